// Package window writes the recent lines of a chat as threads of replies, for the
// prompt of a turn. It does no I/O: the same rows give the same text.
package window

import (
	"cmp"
	"slices"
)

// Limits of a window.
const (
	maxThreads  = 5
	maxMessages = 20
	maxText     = 2 << 10  // of one message, in bytes
	maxBytes    = 24 << 10 // of all messages, in bytes
)

// Row is one message of a chat.
type Row struct {
	ID     int64
	Parent int64  // the row that it answers; 0, or a row that is not there, for none
	Time   int64  // unix ms
	Sender string // its address, such as "telegram:77"
	Name   string // its sender's display name
	Own    bool   // the assistant wrote it
	Quoted bool   // it came along with a message that answers, quotes or forwards it
	Agent  string // the group whose agent wrote it as a user, "" for none
	Text   string
	More   int // bytes of the message that Text leaves out
}

// thread is a tree of replies, oldest first.
type thread struct {
	rows  []Row
	alone bool // it is a single message
}

// buildThreadForest groups rows into threads: a row belongs to the thread of the row
// that it answers. Then it leaves out the rows that except reports, and keeps the
// newest threads and messages, within the limits. The thread with the newest row
// comes first. The order of rows does not matter, nor does a row that occurs twice,
// a parent that is missing, or rows that answer each other in a circle.
func buildThreadForest(rows []Row, except func(id int64) bool) []thread {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, inOrder)
	rows = slices.CompactFunc(rows, func(a, b Row) bool { return a.ID == b.ID })

	roots := findRoots(rows)
	var forest []thread
	threadOf := make([]int, len(rows)) // by root: its number in forest from 1
	for i := range rows {
		if except(rows[i].ID) {
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

// findRoots returns for each row the index of one row of its tree, the same for all
// of them.
func findRoots(rows []Row) []int {
	index := make(map[int64]int, len(rows))
	roots := make([]int, len(rows))
	for i := range rows {
		index[rows[i].ID], roots[i] = i, i
	}
	root := func(i int) int {
		for roots[i] != i {
			roots[i] = roots[roots[i]]
			i = roots[i]
		}
		return i
	}
	for i := range rows {
		if parent, there := index[rows[i].Parent]; there {
			roots[root(i)] = root(parent)
		}
	}
	for i := range rows {
		roots[i] = root(i)
	}
	return roots
}

// keepNewest leaves the newest messages of all threads, and the threads that still
// have any.
func keepNewest(forest []thread) []thread {
	var all []Row
	for _, t := range forest {
		all = append(all, t.rows...)
	}
	slices.SortFunc(all, func(a, b Row) int { return inOrder(b, a) })
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
