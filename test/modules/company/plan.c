/*
 * plan.c
 *	  Notices whoever writes into a Plan tree, which may be shared by executions.
 *
 *	la_company.plan
 *		digest		the plan's text, as nodeToString() writes it, is compared when
 *					la_company_observe() is called, after ExecutorRun, and at the end
 *		protect		queries are executed by a copy of their plan in memory that cannot be
 *					written.  Whoever does writes after all, but does not go unnoticed:
 *					the signal's handler complains, and gives in.
 *
 * The executor itself does not write there, but for ExecInitModifyTable() before 18: plans of
 * statements that modify are protected when ExecutorStart is over.
 *
 * test/modules/company/plan.c
 */
#include "postgres.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "access/xact.h"
#include "common/hashfn.h"
#include "nodes/plannodes.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "company.h"

enum
{
	PLAN_OFF, PLAN_DIGEST, PLAN_PROTECT
};

static const struct config_enum_entry plan_options[] = {
	{"off", PLAN_OFF, false},
	{"digest", PLAN_DIGEST, false},
	{"protect", PLAN_PROTECT, false},
	{NULL, 0, false}
};

/* Whole pages of a memory context. */
typedef struct Region
{
	MemoryContext context;
	char	   *start;
	char	   *end;
	struct Region *next;
} Region;

#define REGION_SIZE		(1024 * 1024)

static int	mode = PLAN_OFF;
static Region *regions = NULL;
static bool handler_installed = false;
static volatile sig_atomic_t written = 0;

static uint64
digest_of(const QueryDesc *desc)
{
	char	   *text = nodeToString(desc->plannedstmt);
	uint64		digest = hash_bytes_extended((unsigned char *) text, strlen(text), 0);

	pfree(text);
	return Max(digest, 1);
}

/* ---- memory that cannot be written --------------------------------------------- */

static void
on_fault(int signal, siginfo_t * info, void *context)
{
	char	   *address = info->si_addr;
	struct sigaction standard = {0};

	for (Region *r = regions; r != NULL; r = r->next)
	{
		if (address < r->start || address >= r->end)
			continue;
		mprotect(r->start, r->end - r->start, PROT_READ | PROT_WRITE);
		written = 1;
		return;
	}
	/* it is none of ours, and comes again */
	standard.sa_handler = SIG_DFL;
	sigaction(signal, &standard, NULL);
}

/* Nobody needs the plans of queries that are over, one way or another. */
static void
forget_regions(XactEvent event, void *arg)
{
	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT)
		return;
	while (regions != NULL)
	{
		Region	   *r = regions;

		regions = r->next;
		mprotect(r->start, r->end - r->start, PROT_READ | PROT_WRITE);
		MemoryContextDelete(r->context);
		pfree(r);
	}
}

static void
install_handler(void)
{
	struct sigaction action = {0};

	if (handler_installed)
		return;
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO;
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGSEGV, &action, NULL) != 0)
		elog(ERROR, "sigaction: %m");
	RegisterXactCallback(forget_regions, NULL);
	handler_installed = true;
}

static PlannedStmt *
protected_copy(PlannedStmt *original)
{
	Size		page = sysconf(_SC_PAGESIZE);
	Region	   *r = MemoryContextAlloc(TopMemoryContext, sizeof(Region));
	MemoryContext old;
	PlannedStmt *copy;
	char	   *block;

	r->context = AllocSetContextCreate(TopMemoryContext, "read-only plan",
									   0, REGION_SIZE, REGION_SIZE);
	old = MemoryContextSwitchTo(r->context);
	/* the plan is put into the block of which this is the beginning */
	block = palloc(1);
	r->start = (char *) TYPEALIGN(page, block);
	palloc(r->start - block);
	copy = copyObject(original);
	block = palloc(1);
	palloc(page);
	r->end = (char *) TYPEALIGN_DOWN(page, block + page);
	MemoryContextSwitchTo(old);
	if (block - r->start > REGION_SIZE || block < r->start)
		elog(ERROR, "the plan is too large to be protected");
	r->next = regions;
	regions = r;
	return copy;
}

/* The region that was made last. */
static void
protect(void)
{
	if (mprotect(regions->start, regions->end - regions->start, PROT_READ) != 0)
		elog(ERROR, "mprotect: %m");
}

static bool
modifies(const PlannedStmt *stmt)
{
	return stmt->commandType != CMD_SELECT || stmt->hasModifyingCTE;
}

/* ---- what the hooks call -------------------------------------------------------- */

void
plan_before_start(QueryDesc *desc)
{
	if (mode != PLAN_PROTECT)
		return;
	install_handler();
	desc->plannedstmt = protected_copy(desc->plannedstmt);
	if (!modifies(desc->plannedstmt))
		protect();
}

void
plan_at_start(Execution *query)
{
	if (mode == PLAN_PROTECT)
		protect();
	if (mode != PLAN_OFF)
		query->digest = digest_of(query->desc);
}

void
plan_check(Execution *query, const char *when)
{
	if (written)
		complain("a Plan tree was written to, noticed %s", when);
	written = 0;
	if (query->digest != 0 && digest_of(query->desc) != query->digest)
		complain("the Plan tree is another one %s", when);
}

void
plan_define_settings(void)
{
	DefineCustomEnumVariable("la_company.plan", "", NULL, &mode, PLAN_OFF,
							 plan_options, PGC_USERSET, 0, NULL, NULL, NULL);
}
