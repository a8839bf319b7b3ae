// Package decide decides a chat's undecided rows, each by its Kind. It is pure: Step
// takes the state kept about a chat and the facts read about its rows, and returns
// the next state and the effects to store, as values that print. It does no I/O
// and reads no clock.
package decide

import (
	"fmt"
	"runtime/debug"
	"slices"

	"arizuko/pkg/msg"
)

// State is kept between two steps about one chat. The zero value is that of
// a chat about which nothing is known: all of it can be derived from the rows again.
type State struct {
	Gate    impulseGate
	Release Release
	Due     int64  // when to step again, unix ms, 0 for never
	Awaits  Awaits // the things that undecided rows wait for, besides Due
	Again   bool   // load the rows again and step at once

	ReadsRequest bool // read the chat's request, before routd is asked about its rows
}

// Idle reports whether no undecided row is known, so that the state need not be kept.
func (s State) Idle() bool {
	return s.Gate.Count == 0 && s.Due == 0 && s.Awaits == 0 && !s.Again && s.Release == ReleaseNone
}

// Awaits is a set of things that rows wait for.
type Awaits uint8

// Things that rows may wait for.
const (
	AwaitsRoutd Awaits = 1 << iota // routd's answer
	AwaitsRoute                    // a change of the routes
)

// Release is which of the rows read by the next step it releases from the gate.
type Release uint8

// Which rows are released.
const (
	ReleaseNone Release = iota
	ReleaseDue          // those held before: the gate was due. Unfinished groups of rows stay.
	ReleaseAll          // all: a row after them changes the facts that they are decided by
)

// Facts are read about one chat for a step.
type Facts struct {
	Now     int64
	Chat    msg.Chat
	HasChat bool    // the chat has a stored row
	Rows    []Row   // undecided rows after State.Gate.ThroughID, in id order
	Last    int64   // the last row read, also of those left out of Rows; 0 for none
	More    bool    // further rows follow
	InCall  []int64 // rows that services decide at the moment

	Routd       Routd
	LastStaleAt int64 // when the last row that was too old on arrival came, unix ms
	RetryMS     int64 // when to ask again about a row that routd left without an answer
	MaxAge      int64 // ms
	Default     msg.Impulse

	Request Request // to connect the chat
	Parked  int     // how many rows of the chat wait for it
	Samples []Row   // some of them, one of each kind that routes tell apart
}

// Routd says how far routd's answers can be counted on.
type Routd uint8

// States of routd. While it is slow or away, only rows that need no answer of it are decided.
const (
	RoutdAnswers Routd = iota
	RoutdSlow          // its answer comes later than commands may wait
	RoutdAway          // it does not answer
)

// step is one step under way.
type step struct {
	f       *Facts
	state   State // as it was before
	gate    impulseGate
	due     int64
	awaits  Awaits
	effects []Effect
	stored  bool // effects has some that are stored

	held         []*Row // added to the gate in this step
	turns        turns
	calls        []int64 // rows that services decide
	decided      map[int64]bool
	bound        map[string]string    // thread → the named topic that this step binds it to
	notice       bool                 // the notice that the bot was offline is taken care of
	spent        map[spender]int      // turns that count against a rate
	commandsSent map[string]*Commands // by sender
	notified     map[string]bool      // senders about whom this step notifies the chat
	chosen       map[int64]bool       // questions that this step closes
	claimed      bool                 // a row that was dropped for its sender would have claimed engagement
	asks         bool                 // onbod is asked for a request
	parked       int                  // rows parked in this step
	readsRequest bool                 // the chat's request has to be read
	blocked      string               // the reason why all further rows wait, but for commands and changes; "" for none
	ended        bool                 // a barrier was reached
	current      *Row
}

// arrive decides a row that acts by itself, and takes any other to the gate.
func (w *step) arrive(r *Row) {
	w.current = r
	switch r.Kind {
	case KindBroken:
		w.drop(r, msg.ReasonBadRow, r.Problem)
	case KindLeak:
		w.leak(r)
	case KindBallot:
		w.ballot(r)
	case KindAnswer:
		w.answerAsk(r)
	case KindChange:
		w.change(r)
	case KindCommand: // waits neither for the gate nor for rows before it
		if !w.command(r) {
			w.toGate(r)
		}
	case KindText, KindEvent, KindMention, KindForwarded:
		switch {
		case r.Known && r.Answer.Error != "":
			w.drop(r, msg.ReasonBadRow, "routd refused the row: "+r.Answer.Error)
		case w.following(r): // its group is a command
		case w.tokens(r): // a bare token pins the chat
		default:
			w.toGate(r)
		}
	default:
		panic("the row was not classified")
	}
}

// toGate holds a row in the gate. Without routd's answer it waits, and those after it do.
func (w *step) toGate(r *Row) {
	if !w.resolve(r) && !w.access(r) {
		w.hold(r)
	}
}

// leave decides a row that the gate releases, by the first layer that takes it.
func (w *step) leave(r *Row) {
	w.current = r
	switch {
	case r.Kind == KindForwarded: // it carries its address
		w.forwarded(r)
	case w.stale(r): // it was too old on arrival
	case w.botLoop(r):
	case w.prefix(r): // it names its group or topic
	default:
		w.route(r)
	}
}

// Step decides as many rows as can be decided, in their order. A row that changes
// how the rows after it are decided ends the step, and State.Again is set. A row on
// which deciding panics is decided alone: it is dropped with the panic.
func Step(s State, f *Facts) (next State, effects []Effect) {
	w := &step{
		f: f, state: s, gate: s.Gate, turns: newTurns(), decided: map[int64]bool{}, bound: map[string]string{},
		spent: map[spender]int{}, commandsSent: map[string]*Commands{}, notified: map[string]bool{},
		chosen: map[int64]bool{},
	}
	defer func() {
		if cause := recover(); cause != nil {
			next, effects = w.panicked(cause)
		}
	}()
	next = w.run()
	return next, w.finish()
}

func (w *step) run() State {
	if w.decideParked() {
		return State{Again: true}
	}
	if w.state.Gate.Count > 0 && w.f.Routd == RoutdAnswers && slices.ContainsFunc(w.f.Rows, w.releases) {
		return State{Release: ReleaseAll, Again: true, ReadsRequest: w.state.ReadsRequest}
	}
	for i := range w.f.Rows {
		if w.ended {
			break
		}
		w.arrive(&w.f.Rows[i])
	}
	w.current = nil
	if w.f.Routd != RoutdAnswers && !w.ended {
		next := w.state // rows that need routd have not been looked at
		next.Awaits |= w.awaits
		return next
	}
	if w.blocked == "" {
		w.gate.ThroughID = max(w.gate.ThroughID, w.f.Last)
	}
	return w.end()
}

// end looks at the gate once the rows are in it.
func (w *step) end() State {
	var next State
	more := w.f.More && w.blocked == ""
	switch {
	case w.ended:
	case w.state.Gate.Count > 0 && w.gate.due(w.f.Now): // the rows held before have to be read again
		next.Release, next.Again = ReleaseDue, true
	case w.state.Release != ReleaseNone || w.gate.due(w.f.Now):
		next.Gate = w.release(w.state.Release)
		next.Again, next.Due = more, earliest(w.due, next.Gate.DueAt())
		if more && next.Gate.Count == 0 {
			next.Release = max(w.state.Release, ReleaseDue)
		}
	default:
		next.Gate, next.Again, next.Due = w.gate, more, earliest(w.due, w.gate.DueAt())
		w.noteHeld(w.held)
	}
	w.storeTurns()
	if w.ended { // also while rows were released
		next = State{Again: true}
	}
	next.ReadsRequest = w.readsRequest || w.state.ReadsRequest
	next.Awaits = w.awaits
	if next.Gate.ThroughID != 0 { // rows before these are not read again, and still wait as they did
		next.Awaits |= w.state.Awaits & AwaitsRoute
	}
	return next
}

// finish returns the effects, with the chat's own row first if it has none.
func (w *step) finish() []Effect {
	if w.stored && !w.f.HasChat {
		return append([]Effect{EnsureChat{Chat: w.f.Chat.JID}}, w.effects...)
	}
	return w.effects
}

// panicked drops the row on which the step panicked; all others are decided by the next step.
func (w *step) panicked(cause any) (State, []Effect) {
	r := w.current
	if r == nil {
		if len(w.f.Rows) == 0 {
			panic(cause)
		}
		r = &w.f.Rows[0]
	}
	problem := fmt.Sprintf("panic: %v\n%s", cause, debug.Stack())
	return State{Again: true}, []Effect{Decide{
		Row: r.ID, Disposition: msg.Dropped, Reason: msg.ReasonBadRow, Topic: r.Topic, ThreadID: r.ThreadID,
		Error: problem,
	}}
}

// resolve makes rows wait that routd has not answered, and all rows after them.
func (w *step) resolve(r *Row) bool {
	if w.blocked != "" {
		w.wait(r, w.blocked)
		return true
	}
	if r.Known {
		return false
	}
	w.blocked = ForRoutd
	w.awaits |= AwaitsRoutd
	w.wait(r, ForRoutd)
	w.due = earliest(w.due, w.f.Now+w.f.RetryMS)
	return true
}

func (w *step) add(e Effect) {
	w.effects = append(w.effects, e)
	switch e := e.(type) {
	case Hold, Wait, OpenRequest:
		return
	case Decide:
		w.decided[e.Row] = true
	}
	w.stored = true
}

// decide gives a row its disposition; it keeps its topic and thread.
func (w *step) decide(r *Row, disposition msg.Disposition, reason msg.Reason, routedTo string) {
	w.add(Decide{Row: r.ID, Disposition: disposition, Reason: reason, RoutedTo: routedTo, Topic: r.Topic,
		ThreadID: r.ThreadID})
}

// decideAct is decide for a row that acts on a poll or a question: one of a stranger makes no chat.
func (w *step) decideAct(r *Row, disposition msg.Disposition, reason msg.Reason) {
	w.decided[r.ID] = true
	w.effects = append(w.effects, Decide{Row: r.ID, Disposition: disposition, Reason: reason, Topic: r.Topic,
		ThreadID: r.ThreadID})
}

func (w *step) drop(r *Row, reason msg.Reason, problem string) {
	w.add(Decide{Row: r.ID, Disposition: msg.Dropped, Reason: reason, Topic: r.Topic, ThreadID: r.ThreadID,
		Error: problem})
}

func (w *step) reply(r *Row, source, text string) {
	w.add(Reply{Row: r.ID, Source: source, Text: text})
}

func (w *step) wait(r *Row, what string) { w.add(Wait{Row: r.ID, For: what}) }

// earliest returns the earlier of two times of which 0 is never.
func earliest(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
