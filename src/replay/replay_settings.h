/*
 * replay_settings.h
 *	  The server's own settings of its look-ahead in recovery, in the startup process.
 *
 * src/replay/replay_settings.h
 */
#ifndef LA_REPLAY_SETTINGS_H
#define LA_REPLAY_SETTINGS_H

extern void la_replay_settings_raise_decode_buffer(void);
extern void la_replay_settings_begin(void);
extern int	la_replay_settings_base(void);
extern bool la_replay_settings_depth_is_ours(void);
extern bool la_replay_settings_advice_is_ours(void);
extern bool la_replay_settings_advises(void);
extern void la_replay_settings_apply(int depth, bool advise);
extern void la_replay_settings_put_back(void);

#endif							/* LA_REPLAY_SETTINGS_H */
