# pg_lookahead: build with PGXS.
#
#   make && make install          against the server of pg_config in PATH,
#   make PG_CONFIG=/path/...      or of that one
#   make installcheck             pg_regress, isolation and TAP tests, on servers
#                                 of their own (not as root)
#   make unit                     unit tests, no server needed
#
# Sources and tests are found by name: a new src/ROOM/NAME.c, test/sql/NAME.sql,
# test/specs/NAME.spec or test/t/NAME.pl needs no change here.

PG_CONFIG ?= pg_config

EXTENSION = pg_lookahead
DATA := $(sort $(wildcard sql/$(EXTENSION)--*.sql))

MODULE_big = pg_lookahead
PGFILEDESC = "pg_lookahead - reads ahead of the executor"
OBJS := $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))
PG_CPPFLAGS = -I$(srcdir)/src

REGRESS := $(patsubst test/sql/%.sql,%,$(sort $(wildcard test/sql/*.sql)))
REGRESS_OPTS = --inputdir=test --temp-instance=tmp_check \
	--temp-config=test/pg_lookahead.conf --no-locale --encoding=UTF8
ISOLATION := $(patsubst test/specs/%.spec,%,$(sort $(wildcard test/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test --temp-instance=tmp_check_iso \
	--temp-config=test/pg_lookahead.conf --no-locale --encoding=UTF8
PROVE_TESTS := $(sort $(wildcard test/t/*.pl))
ifneq ($(PROVE_TESTS),)
TAP_TESTS = 1
endif

EXTRA_CLEAN = tmp_check_iso output_iso

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# servers are seldom configured with --enable-depend
$(OBJS): $(sort $(wildcard src/*.h src/*/*.h))

.PHONY: unit
unit:
	$(MAKE) -C test/unit check
