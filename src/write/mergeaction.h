/*
 * mergeaction.h
 *	  What MERGE will do with a row of its plan, as far as it can be known ahead.
 *
 * src/write/mergeaction.h
 */
#ifndef LA_MERGEACTION_H
#define LA_MERGEACTION_H

#include "nodes/execnodes.h"

typedef struct LaMergeColumn LaMergeColumn;

/* An INSERT or UPDATE, or something that needs no index. */
typedef struct LaMergeAction
{
	CmdType		command;
	int			number;			/* among those of its table */
	bool		decides;		/* its condition can be evaluated ahead */
	bool		may_fail;		/* ... and may fail */
	ExprState  *condition;		/* NULL: none */

	/* columns by their numbers minus FirstLowInvalidHeapAttributeNumber */
	Bitmapset  *known;			/* columns whose new values can be computed */
	Bitmapset  *unknown;		/* ... and those whose values cannot */
	int			ncolumns;
	LaMergeColumn *columns;		/* of known */
	bool		columns_may_fail;
	TupleTableSlot *new;
} LaMergeAction;

/* The actions for rows that are matched by a row of one table, or not matched. */
typedef struct LaMergeActions
{
	bool		useful;			/* one of them may need an index */
	bool		decides;		/* the join's condition can be evaluated ahead */
	bool		may_fail;		/* ... and may fail */
	ExprState  *join_condition; /* NULL: none */
	List	   *matched;		/* LaMergeActions */
	List	   *others;			/* if the join's condition does not hold */
} LaMergeActions;

typedef struct LaMergeInto LaMergeInto;

extern LaMergeInto *la_mergeaction_create(ModifyTableState *mt);
extern LaMergeActions *la_mergeaction_matched(LaMergeInto *merge, ResultRelInfo *relation,
											  const Bitmapset *wanted);
extern LaMergeActions *la_mergeaction_not_matched(LaMergeInto *merge, const Bitmapset *wanted);
extern LaMergeAction *la_mergeaction_choose(LaMergeInto *merge, const LaMergeActions *actions,
											TupleTableSlot *row, TupleTableSlot *old);
extern TupleTableSlot *la_mergeaction_form(LaMergeInto *merge, LaMergeAction *action,
										   TupleTableSlot *row, TupleTableSlot *old);

#endif							/* LA_MERGEACTION_H */
