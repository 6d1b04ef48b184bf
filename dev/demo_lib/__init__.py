"""The demo: real data, three ways to read it, side by side.

contents.sh   fetches Debian's Contents indices and makes rows of them (sourced by dev/demo)
load          tables and index from these rows, or from generated ones
queries       the three questions that are asked
contest       asks them cold and cached, interleaved, and compares the answers
show          tables for the terminal
keep          the script that --keep leaves beside the server
__main__      the order of all this

The server, its variants and the disk's ceiling come from bench/lookbench.
"""
