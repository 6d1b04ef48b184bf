/*
 * graph.h
 *	  Pages that a search in an HNSW graph will need.
 *
 * src/scan/graph.h
 */
#ifndef LA_GRAPH_H
#define LA_GRAPH_H

#include "scan/scan_int.h"

extern void la_graph_watch(LaScan *ls);

#endif							/* LA_GRAPH_H */
