package engagement

import (
	"context"
	"slices"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/routd/internal/rows"
)

// Snapshot is the engagement for one request of gated: the rows as they are, and what the
// request's own items claim. It belongs to one goroutine.
type Snapshot struct {
	tracker *Tracker
	states  map[key]*State
	claimed map[key]bool // the newest claim of the state is one of the request's own
	err     error
}

// Snapshot opens a snapshot. A place is read when it is asked about first.
func (t *Tracker) Snapshot() *Snapshot {
	return &Snapshot{tracker: t, states: map[key]*State{}, claimed: map[key]bool{}}
}

// Read reads places that are asked about next, as many at once as the database answers.
func (s *Snapshot) Read(ctx context.Context, items []routeapi.Item) {
	if s.tracker.st.AtOnce() == 1 {
		return
	}
	var places []key
	for _, item := range items {
		at := key{item.ChatJID, msg.Place(item.ThreadID, item.Topic)}
		if !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	states, errs := make([]*State, len(places)), make([]error, len(places))
	s.tracker.st.AllAtOnce(len(places), func(i int) {
		states[i], errs[i] = s.tracker.State(ctx, places[i].chatJID, places[i].place)
	})
	for i, at := range places {
		if errs[i] == nil {
			s.states[at] = states[i]
		}
	}
}

// Engaged returns the folder that answers a row received at a time in a place of a chat, "" for
// none.
func (s *Snapshot) Engaged(ctx context.Context, chatJID, place string, at int64) string {
	return s.state(ctx, chatJID, place).Engaged(at)
}

// Claim adds a claim of a folder on a place, from a time on, for the items that follow.
func (s *Snapshot) Claim(ctx context.Context, chatJID, place, folder string, at int64) {
	state := s.state(ctx, chatJID, place)
	if last := state.Claims; s.claimed[key{chatJID, place}] && last[0].Folder == folder {
		last[0].At, last[0].LastAt = min(last[0].At, at), max(last[0].LastAt, at)
		return
	}
	state.Claims = append([]rows.Claim{{Folder: folder, At: at, LastAt: at}}, state.Claims...)
	s.claimed[key{chatJID, place}] = true
}

// Err returns the first error of reading rows. After one the snapshot's answers are invalid.
func (s *Snapshot) Err() error { return s.err }

func (s *Snapshot) state(ctx context.Context, chatJID, place string) *State {
	at := key{chatJID, place}
	if state := s.states[at]; state != nil {
		return state
	}
	state, err := s.tracker.State(ctx, chatJID, place)
	if err != nil {
		s.err = err
		state = &State{}
	}
	s.states[at] = state
	return state
}
