"""The numbers behind the learned defaults: beliefs, thresholds and rounds, the same for every data set.

One value serves all data sets, but the values were chosen with gold labels in view: those of eight real sets, of sets
derived from them or made of labelled data inside public packages, and of simulated worlds. Scores on the eight sets are
not held out. docs/explanation/learned-defaults.md says how each was chosen, on what, and what it assumes.
"""

from __future__ import annotations

from math import log
from typing import Final

# --- beliefs about sources, to which what is learned leans -----------------------------------------------------------
SHARED_ERRORS: Final = 0.5  # correlation of the errors of two different sources (design effect of their votes)
# Exponents of balance, share, votes (by design effect), silence, neighbours (times how far labels outlast errors). That
# of the balance holds under a background; elsewhere it is that of the votes, design effect included.
BELIEF: Final = (0.5, 0.5, 0.5, 0.1, 1.0)
RIDGE_SHARE: Final = 1.0  # the belief weighs this / (m - 2) of the votes of m sources: as one source among its peers
RIDGE_VOTES: Final = 20.0  # ... and in votes, at least
SHARE_PRIOR: Final = 0.5  # votes' worth of class balance that is added to the vote share
CASTING: Final = log(2)  # log-odds of the first of two classes where votes tie: it is right two times in three
ROOM: Final = 1 / 3  # agreement beyond chance k leaves (k + this) / (k + 2 this) of the log-odds: all may share errors
DOUBT: Final = 0.03  # ... and so much of every label is the class balance
PATIENCE: Final = 2e-3  # nats per vote by which a model may predict its worst source worse than caution does: no trust
TRUSTED: Final = 0.98  # trust from which on the model is taken at its word, and below 1 - this not asked at all
CROWD: Final = 0.5  # share of votes that were not asked for, above which no edges are searched for

# --- families ------------------------------------------------------------------------------------------------------
NEAR: Final = 0.7  # two sources are variants below this multiple of the expected disagreement
NEAR_ROUNDS: Final = 5
SKILL_ROUNDS: Final = 20
FAMILY: Final = 2.0  # further variants beyond the first at which a group is judged by its agreement
RELATED: Final = 0.5  # similarity above which a source is no peer of another

# --- learning from peers -------------------------------------------------------------------------------------------
TARGETS: Final = 20_000  # votes that are predicted
FEWEST_TARGETS: Final = 500  # ... of every source, if it has so many
MOST_FOLDS: Final = 10  # groups of sources that are left out together
OWN_VOTES: Final = 10.0  # pseudo-votes per row behind the table of a left-out source
ROUNDS_PEERS: Final = 4  # of tables and exponents in turn, twice
LEARNED_FROM: Final = 1 << 14  # elements with two votes that peers are compared on
ROUNDS_TABLES: Final = 5  # of expectation and maximisation from the vote
STAYING: Final = 0.9  # first guess of P(next label = label), beyond chance
FARTHEST: Final = -12.0  # smallest log of what neighbours say
ROUNDS_SCALING: Final = 500  # at most, of rows and columns of a pair of labels
LEAST: Final = 1e-12  # smallest probability of a label in a chain

# --- tables --------------------------------------------------------------------------------------------------------
PSEUDO_VOTES: Final = 2.0  # per row of a table, spread like the source's own votes
UNSEEN: Final = 1e-6  # probability of a vote that never occurred, whatever the label
PSEUDO_PAIRS: Final = 5.0  # per row of the table of an edge, spread like the table without the edge

# --- the search for edges ------------------------------------------------------------------------------------------
FALSE_DISCOVERIES: Final = 0.1  # share of edges and self-dependences found that may be false, on average
JACKKNIFE_BLOCK: Final = 64  # elements of one sequence that are left out together for the errors of residuals
STRONG_EDGE: Final = 0.3  # residual correlation of a discovery that makes an edge at once
WEAK_EDGE: Final = 0.04  # ... and after the first fit
LARGEST_GROUP: Final = 4  # sources that are modelled all together where edges join them
VOTES_PER_CELL: Final = 10.0  # ... if there are so many elements for every cell of their table
FITS: Final = 0.002  # misfit below which no more edges are looked for
LASTING: Final = 0.2  # ... nor above this median own-lag correlation of errors, but for strong ones
SELF_EDGE: Final = 0.1  # own-lag residual correlation of a discovery that makes a source self-dependent
LONGEST_LAG: Final = 5  # elements between a vote and the one that it may repeat
MOST_STATES: Final = 64  # of the labels that an exact chain has to remember for that, K ** lag
MOST_REPEATS: Final = 0.95  # probability that a source repeats itself, at most
SIGNIFICANT: Final = 2.5  # standard errors below which a residual is noise
STEADY: Final = 10.0  # pseudo-observations that steady a residual correlation

# --- the graph by a low-rank-plus-sparse decomposition -------------------------------------------------------------
SPARSE: Final = 2.0  # penalty of a dependence, in units of sqrt(log(indicators) / elements): the size of noise
LOW_RANK: Final = 3.0  # penalty of what labels do to all votes, in units of the other
RIDGE: Final = 1e-3  # added to the variance of every indicator, so that the inverse exists
MOST_CLASSES: Final = 5  # classes with indicators, those with most votes

# --- how far the model is trusted ----------------------------------------------------------------------------------
OPPOSITE: Final = 0.95  # share of contradictions from which on one of two sources is taken to be turned round
SPLIT: Final = 1 << 12  # elements on which a second kind of elements in every class is looked for
ROUNDS_SPLIT: Final = 20  # ... in so many rounds
HELD: Final = 0.01  # share of the labels up to which a class of a fitted model holds next to nothing
SATURATED: Final = 3  # independent groups of sources that some label always explains: they confirm nothing
FEWEST_SOURCES: Final = 3  # on elements, below which no model can be tested

# --- rounds --------------------------------------------------------------------------------------------------------
ROUNDS_ALONE: Final = 2  # E/M rounds without the chain
ROUNDS_CHAIN: Final = 12  # ... with it
ROUNDS_MORE: Final = 12  # ... more of them where the model is trusted
SETTLED: Final = 3e-4  # largest change of a table at which these end early
ROUNDS_STICKY: Final = 4  # for the transitions of the answer
ROUNDS_EXACT: Final = 30  # at most, through the exact engine, with every source at every resolution
ROUNDS_LARGE: Final = 2  # ... where there are more votes than the search looked at

# --- sizes ---------------------------------------------------------------------------------------------------------
PART: Final = 1 << 18  # elements that anything is learned from, where there are more than twice as many
FEWEST_SEQUENCES: Final = 256  # ... in at least so many sequences, else all of them or pieces
SEARCHED: Final = 1 << 16  # elements with two votes that the search looks at, where there are more than twice as many
CHUNK: Final = 1 << 12  # longest piece of a sequence in a sample
BLOCK: Final = 1 << 15  # elements that are labelled at a time
