// Package window writes the recent lines of a chat as threads, for the prompt of a
// turn. It does no I/O: the same rows give the same text.
package window

import (
	"cmp"
	"slices"
	"time"
)

// Limits of a window.
const (
	maxThreads  = 5
	maxMessages = 20
	maxText     = 2 << 10  // of one message, in bytes
	maxBytes    = 24 << 10 // of all messages, in bytes
)

// pause is how long a place is silent before its next message begins another thread.
const pause = 30 * time.Minute

// Row is one message of a chat.
type Row struct {
	ID     int64
	Parent int64  // the row that it answers; 0, or a row that is not there, for none
	Place  string // the platform's thread, "" outside of one
	Opens  bool   // the thread whose lines these are was opened from it
	Time   int64  // unix ms
	Sender string // its address, such as "telegram:77"
	Name   string // its sender's display name
	Own    bool   // the assistant wrote it
	Quoted bool   // it came along with a message that answers, quotes or forwards it
	Agent  string // the group whose agent wrote it as a user, "" for none
	Text   string
	More   int // bytes of the message that Text leaves out
}

// thread is a tree of replies, or a conversation without replies, oldest first.
type thread struct {
	rows  []Row
	alone bool // it is a single message
}

// buildThreadForest groups rows into threads: a row belongs to the thread of the row
// that it answers, and rows of one place that no user answers are one thread until a
// pause. Then it leaves out the rows in except, and keeps the newest threads
// and messages, within the limits. The thread with the newest row comes first. The
// order of rows does not matter, nor does a row that occurs twice, a parent that is
// missing, or rows that answer each other in a circle.
func buildThreadForest(rows []Row, except map[int64]bool) []thread {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, inOrder)
	rows = slices.CompactFunc(rows, func(a, b Row) bool { return a.ID == b.ID })

	parents := findParents(rows)
	roots := findRoots(parents)
	joinConversations(rows, parents, roots)
	var forest []thread
	threadOf := make([]int, len(rows)) // by root: its number in forest from 1
	for i := range rows {
		if except[rows[i].ID] {
			continue
		}
		number := &threadOf[roots[i]]
		if *number == 0 {
			forest = append(forest, thread{})
			*number = len(forest)
		}
		t := &forest[*number-1]
		t.rows = append(t.rows, rows[i])
	}
	for i := range forest {
		forest[i].alone = len(forest[i].rows) == 1
	}
	slices.SortFunc(forest, func(a, b thread) int { return inOrder(b.newest(), a.newest()) })
	return keepNewest(forest[:min(len(forest), maxThreads)])
}

func (t thread) newest() Row { return t.rows[len(t.rows)-1] }

// inOrder compares by time, rows of the same moment by id.
func inOrder(a, b Row) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.ID, b.ID))
}

// findParents returns for each row the index of the row that it answers, its own for
// none.
func findParents(rows []Row) []int {
	index := make(map[int64]int, len(rows))
	for i := range rows {
		index[rows[i].ID] = i
	}
	parents := make([]int, len(rows))
	for i := range rows {
		parents[i] = i
		if parent, there := index[rows[i].Parent]; there {
			parents[i] = parent
		}
	}
	return parents
}

// findRoots returns for each row the index of one row of its tree, the same for all
// of them.
func findRoots(parents []int) []int {
	roots := make([]int, len(parents))
	for i := range roots {
		roots[i] = i
	}
	root := func(i int) int {
		for roots[i] != i {
			roots[i] = roots[roots[i]]
			i = roots[i]
		}
		return i
	}
	for i, parent := range parents {
		roots[root(i)] = root(parent)
	}
	for i := range roots {
		roots[i] = root(i)
	}
	return roots
}

// joinConversations gives the trees that follow each other in a place without a pause
// one root. The assistant answers each message that is for it, so its answers do not
// make a tree a thread of its own; those of users do, and all in another place.
func joinConversations(rows []Row, parents, roots []int) {
	answered := make([]bool, len(rows)) // by root
	for i := range rows {
		if p := parents[i]; p != i && (!rows[i].Own || rows[i].Place != rows[p].Place) {
			answered[roots[i]] = true
		}
	}
	type conversation struct {
		root int
		last int64 // time of its newest row so far
	}
	open := map[string]*conversation{} // by place
	joined := make([]*conversation, len(rows))
	for i := range rows {
		if answered[roots[i]] {
			continue
		}
		root := roots[i]
		if joined[root] == nil {
			c := open[rows[i].Place]
			if c == nil || rows[i].Time-c.last >= pause.Milliseconds() {
				c = &conversation{root: root}
				open[rows[i].Place] = c
			}
			joined[root] = c
		}
		joined[root].last, roots[i] = rows[i].Time, joined[root].root
	}
}

// keepNewest leaves the newest messages of all threads, and the threads that still
// have any. The message that a thread was opened from stays with them.
func keepNewest(forest []thread) []thread {
	var all []Row
	for _, t := range forest {
		all = append(all, t.rows...)
	}
	slices.SortFunc(all, func(a, b Row) int {
		switch {
		case a.Opens == b.Opens:
			return inOrder(b, a)
		case a.Opens:
			return -1
		}
		return 1
	})
	size, kept := 0, map[int64]bool{}
	for _, row := range all[:min(len(all), maxMessages)] {
		if size += min(len(row.Text), maxText); size > maxBytes {
			break
		}
		kept[row.ID] = true
	}
	for i := range forest {
		forest[i].rows = slices.DeleteFunc(forest[i].rows, func(row Row) bool { return !kept[row.ID] })
	}
	return slices.DeleteFunc(forest, func(t thread) bool { return len(t.rows) == 0 })
}
