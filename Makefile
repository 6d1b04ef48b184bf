# pg_lookahead: build with PGXS.
#   make && make install          against the server of pg_config in PATH,
#   make PG_CONFIG=/path/...      or of that one
#   make installcheck             tests what is installed, on a temporary server or on
#                                 the one that PGHOST and PGPORT name: test/installcheck
#   make unit                     unit tests, no server needed
#
# In another directory, make -f /path/Makefile builds there, with VPATH=/path or without.
# Sources and scripts are found by name: a new src/ROOM/NAME.c needs no change here.

PG_CONFIG ?= pg_config
# Make cannot deal with a name in two words, of which this file's is only the last.
ifneq ($(words x$(CURDIR)x$(VPATH))$(wildcard $(lastword $(MAKEFILE_LIST))),1$(lastword $(MAKEFILE_LIST)))
$(error the path of pg_lookahead, or of the directory to build in, has a blank in it: move it elsewhere)
endif

# Files are named relative to this one.  Not the PGXS of every server finds VPATH out by itself.
SOURCE := $(patsubst %/,%,$(or $(VPATH),$(dir $(firstword $(MAKEFILE_LIST)))))
ifneq ($(realpath $(SOURCE)),$(realpath .))
VPATH := $(SOURCE)
endif
found = $(patsubst $(SOURCE)/%,%,$(sort $(wildcard $(addprefix $(SOURCE)/,$(1)))))

EXTENSION = pg_lookahead
DATA := $(call found,sql/$(EXTENSION)--*.sql)
MODULE_big = pg_lookahead
PGFILEDESC = "pg_lookahead - reads ahead of the executor"
OBJS := $(patsubst %.c,%.o,$(call found,src/*.c src/*/*.c))
PG_CPPFLAGS = -I$(srcdir)/src

# A linker is content without any object, and PGXS without any script.
ifeq ($(and $(OBJS),$(DATA)),)
$(error there are no sources of pg_lookahead in $(SOURCE); VPATH must be the directory of its Makefile)
endif
# Only what the server looks up by name is visible, which 16 and later see to themselves.
PG_CFLAGS = -fvisibility=hidden -DPGDLLEXPORT='__attribute__((visibility("default")))'
EXTRA_CLEAN = regression.diffs

# The server would inline from bitcode what expressions call, of which there is nothing here.
override with_llvm = no
ifeq ($(wildcard $(shell $(PG_CONFIG) --includedir-server)/postgres.h),)
$(error "$(PG_CONFIG)" finds no headers of a server: install postgresql-server-dev-15 or the like, or say PG_CONFIG=)
endif
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
$(if $(filter 15 16 17 18 19,$(MAJORVERSION)),,$(error pg_lookahead supports PostgreSQL 15 to 19, and not $(VERSION) yet))
# servers are seldom configured with --enable-depend
$(OBJS): $(addprefix $(SOURCE)/,$(call found,src/*.h src/*/*.h))

# by their whole names: by VPATH, make would find those of the sources
OBJDIRS := $(addprefix $(CURDIR)/,$(sort $(dir $(OBJS))))
$(OBJS): | $(OBJDIRS)
$(OBJDIRS):
	mkdir -p $@
.PHONY: installcheck unit
installcheck:
	PG_CONFIG='$(PG_CONFIG)' $(SOURCE)/test/installcheck

unit:
	$(MAKE) -C $(SOURCE)/test/unit check
