/*
 * graph.h
 *	  Pages that a search in an HNSW graph will need.
 *
 * src/scan/graph.h
 */
#ifndef LA_GRAPH_H
#define LA_GRAPH_H

#include "scan/shim.h"

typedef struct LaGraph LaGraph;

extern LaGraph *la_graph_create(LaScan *ls);
extern bool la_graph_may_run_ahead(const LaGraph *g, uint64 nrows);
extern bool la_graph_gettuple(LaScan *ls, ScanDirection dir);

#endif							/* LA_GRAPH_H */
