// Package turncontext reads the parts of a turn's prompt: its messages, those they reply to,
// the recent lines of the chat, and rows of the group's other chats.
package turncontext

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/shown/prompt"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Reader reads prompts.
type Reader struct {
	Store     store.Reader
	Operators map[string]bool // of OPERATORS: prompts mark their messages, and those of who became one by a code
	Location  *time.Location  // of times in prompts
	Names     []string        // of the assistant in all groups
	// Files replaces the paths of attachments by those in the group's folder, "" with an
	// error in the attachment if there is none.
	Files func(folder string, rows []*msg.Message) error
}

// Request is the turn whose prompt is read.
type Request struct {
	Turn  *msg.Turn
	Facts rows.PromptFacts
	Group groupconfig.Config // of the turn's group
	Shown Shown
	// NewSession says that the agent begins a session with this prompt.
	NewSession bool
	Moment     Moment
}

// Shown has the rows that the run of a turn has been shown. The zero value is that of a run before
// its first prompt.
type Shown struct {
	Prompted bool
	Through  int64                 // rows of other chats up to this decision
	Upto     int64                 // recent lines of the chat up to this row
	Rows     map[int64]bool        // other rows, by id, and the ones that they were made from
	Own      func(turn int64) bool // reports its own turns, whose answers it wrote; nil for none
}

// Moment is the time at which a prompt is made: rows of other chats are those that were
// there then.
type Moment struct {
	At         time.Time
	BeforeTurn int64 // of the turns answered before, those with a lower id
	Through    int64 // decisions up to this one
}

// Prompt is a prompt and the rows that it adds to those its run has been shown.
type Prompt struct {
	Text    string
	Through int64 // see Shown
	upto    int64
	rows    []*msg.Message
}

// Add adds the rows that a prompt shows.
func (s *Shown) Add(p *Prompt) {
	if s.Rows == nil {
		s.Rows = map[int64]bool{}
	}
	for _, m := range p.rows {
		s.Rows[m.ID] = true
		if m.DerivedFrom != 0 {
			s.Rows[m.DerivedFrom] = true
		}
	}
	s.Prompted, s.Through, s.Upto = true, p.Through, max(s.Upto, p.upto)
}

// Read makes the prompt of a turn, with the rows that its run has not been shown yet.
func (r Reader) Read(ctx context.Context, q Request) (p Prompt, err error) {
	in := prompt.Input{Turn: q.Turn, Kind: q.Facts.Kind, Title: q.Facts.Title, Location: r.Location,
		Operators: map[string]bool{}}
	maps.Copy(in.Operators, r.Operators)
	maps.Copy(in.Operators, q.Facts.Operators)
	if in.Messages, err = factrows.TurnMessages(ctx, r.Store, q.Turn.ID); err != nil {
		return p, err
	}
	if err = r.files(ctx, q.Turn.Folder, in.Messages); err != nil {
		return p, err
	}
	if q.Facts.HasSystem {
		if in.System, err = r.system(ctx, q.Turn.ID); err != nil {
			return p, err
		}
	}
	chain, err := r.replyChain(ctx, &q, in.Messages)
	if err != nil {
		return p, err
	}
	in.ReplyChain, in.RowIDs = chain.rows, chain.rowIDs
	if err = r.chainFiles(ctx, q.Turn.Folder, in.ReplyChain); err != nil {
		return p, err
	}

	isolated := prompt.ShouldSkipContext(in.Messages)
	if !isolated {
		if in.ChannelContext, err = r.window(ctx, &q, in.Messages, chain.rows); err != nil {
			return p, err
		}
		p.upto = newest(in.Messages)
	}
	if p.Through, err = r.observed(ctx, &q, isolated, &in); err != nil {
		return p, err
	}
	p.rows = append(p.rows, in.Messages...)
	p.rows = append(p.rows, in.ReplyChain...)
	p.Text = prompt.Build(in)
	return p, nil
}

// chainFiles gives the files of a reply chain that are for the group their paths in its folder. Those of others, and of
// answers, have none.
func (r Reader) chainFiles(ctx context.Context, folder string, rows []*msg.Message) error {
	var taken []*msg.Message
	for _, m := range rows {
		if m.FilesFor(folder) {
			taken = append(taken, m)
		} else {
			withoutPath(m)
		}
	}
	return r.files(ctx, folder, taken)
}

// files gives the files of messages their paths in the group's folder, and their transcripts.
func (r Reader) files(ctx context.Context, folder string, rows []*msg.Message) error {
	if err := r.Files(folder, rows); err != nil {
		return err
	}
	return factrows.FillTranscripts(ctx, r.Store, rows)
}

func (r Reader) system(ctx context.Context, turn int64) (lines []prompt.SystemLine, err error) {
	stored, err := rows.TurnSystemMessages(ctx, r.Store, turn)
	for _, s := range stored {
		lines = append(lines, prompt.SystemLine{Origin: s.Origin, Event: s.Event, Body: s.Body})
	}
	return lines, err
}

// newest is the highest id of a turn's rows: its context is of the time when that row
// was stored.
func newest(batch []*msg.Message) (id int64) {
	for _, m := range batch {
		id = max(id, m.ID)
	}
	return id
}

// Now is the moment of a prompt that is made at a time.
func Now(at time.Time) Moment {
	return Moment{At: at, BeforeTurn: math.MaxInt64, Through: math.MaxInt64}
}

// Again makes the prompt of a turn that has started from the rows, as the first prompt of a
// run: rows do not tell what the run was shown before. Defaults are for the settings that the
// group's own configuration lacks. It returns an error if the turn does not exist or has not started.
func (r Reader) Again(ctx context.Context, turnID int64, defaults groupconfig.Config) (string, error) {
	t, err := r.Store.Turn(ctx, turnID)
	switch {
	case err != nil:
		return "", err
	case t == nil:
		return "", fmt.Errorf("no turn %d: `gated why MESSAGE` prints the turn of a message", turnID)
	case t.StartedAt == 0:
		return "", fmt.Errorf("turn %d has not started (%s): its prompt is made when an agent takes it", t.ID, t.State)
	}
	q := Request{Turn: t, Moment: Moment{
		At: time.UnixMilli(t.StartedAt), BeforeTurn: t.ID, Through: cmp.Or(t.ObservedUpto, math.MaxInt64),
	}}
	if q.Group, err = r.group(ctx, t.Folder, defaults); err != nil {
		return "", err
	}
	if q.Facts, err = rows.ReadPromptFacts(ctx, r.Store, t, 0, 0, 0); err != nil {
		return "", err
	}
	if q.NewSession, err = r.beganFork(ctx, t); err != nil {
		return "", err
	}
	p, err := r.Read(ctx, q)
	return p.Text, err
}

// group is the configuration of a group as it is now.
func (r Reader) group(ctx context.Context, folder string, defaults groupconfig.Config) (groupconfig.Config, error) {
	stored, err := r.Store.Group(ctx, folder)
	if err != nil || stored == nil {
		return groupconfig.Config{}.Over(defaults), err
	}
	own, err := groupconfig.Parse(stored.Config)
	if err != nil { // agents run with the defaults meanwhile, too
		return groupconfig.Config{}.Over(defaults), nil //nolint:nilerr // see above
	}
	return own.Over(defaults), nil
}

// beganFork reports whether a turn began the session of a fork: it is the only use of a new
// session that rows tell.
func (r Reader) beganFork(ctx context.Context, t *msg.Turn) (bool, error) {
	fork, err := r.Store.Fork(ctx, t.ChatJID, t.Topic)
	if err != nil || fork == nil {
		return false, err
	}
	before, err := rows.LastAnswered(ctx, r.Store, t.Folder, t.Topic, t.ID)
	return before.EndedAt < fork.CreatedAt, err
}
