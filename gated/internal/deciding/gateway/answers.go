package gateway

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
)

// loadUndo makes the press of an Undo button an /undo of its turn, if that has answered this chat lately.
func (f *reader) loadUndo(ctx context.Context, r *decide.Row, turn int64) error {
	t, err := factrows.Undoable(ctx, f.st.Reader, r.ChatJID, turn, r.ReceivedAt)
	if err != nil {
		return err
	}
	if t == nil || r.Old || r.IsBot {
		r.Choice = &decide.Choice{Late: msg.ReasonUndoLate}
		return nil
	}
	cmd, _ := layers.ParseCommand("/"+msg.CommandUndo, msg.FamilyOf(r.ChatJID), func(string) bool { return true })
	r.Kind, r.Command, r.UndoesTurn = decide.KindCommand, &cmd, turn
	return nil
}

// loadPress reads about the press of a button: which question it answers, or which turn it stops. The latter is the
// command.
func (f *reader) loadPress(ctx context.Context, r *decide.Row) (err error) {
	press, _ := msg.ParsePress(r.Content)
	if press.Undo != 0 {
		return f.loadUndo(ctx, r, press.Undo)
	}
	if press.Stop == 0 {
		a, option, err := factrows.Pressed(ctx, f.st.Reader, r.Message)
		if err == nil {
			err = factrows.AddAdmin(ctx, f.st.Reader, r.ChatJID, r.Sender, a)
		}
		r.Choice = &decide.Choice{Ask: a, Option: option}
		return err
	}
	turn, err := factrows.Stoppable(ctx, f.st.Reader, r.ChatJID, press.Stop)
	if err != nil {
		return err
	}
	if turn == nil || r.Old || r.IsBot {
		r.Choice = &decide.Choice{Late: msg.ReasonStopLate}
		return nil
	}
	cmd, _ := layers.ParseCommand("/"+msg.CommandStop, msg.FamilyOf(r.ChatJID), func(string) bool { return true })
	r.Kind, r.Command, r.StopsTurn = decide.KindCommand, &cmd, turn.ID
	return nil
}

// typed reads which question of an agent a text answers, nil if it is no answer: it replies to a question, or follows
// it where the bot has one user, or in a thread.
func (f *reader) typed(ctx context.Context, r *decide.Row) (*decide.Choice, error) {
	if !r.Typed() || len(r.Content) > msg.MaxAnswer {
		return nil, nil
	}
	asks, open, err := f.asksFor(ctx, r.Message)
	if err == nil {
		err = factrows.AddAdmin(ctx, f.st.Reader, r.ChatJID, r.Sender, asks...)
	}
	for _, a := range asks {
		option, ok := a.Typed(r.Content)
		if !ok || a.State != msg.AskOpen {
			continue
		}
		if unclear, err := f.unclear(ctx, r.Message, a); unclear || err != nil {
			return nil, err
		}
		return &decide.Choice{Ask: a, Option: option, Typed: true}, nil
	}
	if err != nil || len(asks) > 0 || len(open) == 0 {
		return nil, err
	}
	return f.missed(ctx, r, open)
}

// missed reads a text for the bot that matches an option of one of the open questions, but doesn't say which question
// it answers. A turn of its own would wait for those questions. It returns nil for any other text.
func (f *reader) missed(ctx context.Context, r *decide.Row, open []*msg.Ask) (*decide.Choice, error) {
	text := r.Content
	kind, err := rows.ChatKind(ctx, f.st.Reader, r.ChatJID)
	if kind != msg.ChatWeb && kind != msg.ChatDM {
		if !r.Addressed && r.ThreadID == "" {
			return nil, err
		}
		text = mention.ReplaceAllString(text, "")
	}
	for _, a := range open {
		if _, ok := a.Typed(text); ok && a.Who.May(r.Sender) {
			return &decide.Choice{Typed: true}, err
		}
	}
	return nil, err
}

// mention matches the mention of the bot that a text for it begins with.
var mention = regexp.MustCompile(`^\s*(?:@\S+|<@[^>]*>)[\s,:]*`)

// unclear reports whether a number may be about something else than a question: it is no reply, and the bot has said
// more since it asked. A permission is not given before all of the question is there.
func (f *reader) unclear(ctx context.Context, m *msg.Message, a *msg.Ask) (bool, error) {
	if a.IsPermission() {
		if sent, err := factrows.AskBeingSent(ctx, f.st.Reader, a.ID, m.ChatJID); sent != nil || err != nil {
			return true, err
		}
	}
	if a.HasOption(m.Content) || m.ReplyToID != "" && m.ReplyToID != m.ThreadID {
		return false, nil
	}
	return rows.SaidSince(ctx, f.st.Reader, a.MessageID, m)
}

// asksFor are the questions that a text may answer, and all that are open where it was written; of a reply, only the
// former.
func (f *reader) asksFor(ctx context.Context, m *msg.Message) (asks, open []*msg.Ask, err error) {
	if m.ReplyToID != "" {
		a, err := factrows.AskOfTarget(ctx, f.st.Reader, m.ChatJID, m.ReplyToID)
		switch {
		case a != nil:
			return []*msg.Ask{a}, nil, nil
		case err != nil, m.ReplyToID != m.ThreadID: // a message of a thread that replies to its first one is just in it
			return nil, nil, err
		}
	}
	open, err = f.open(ctx, m)
	if err != nil || len(open) == 0 {
		return nil, nil, err
	}
	asks = open
	kind, err := rows.ChatKind(ctx, f.st.Reader, m.ChatJID)
	if err != nil || kind != msg.ChatWeb && kind != msg.ChatDM {
		if err != nil || m.ThreadID == "" {
			return nil, open, err
		}
		// Slack has no other replies than messages of a thread. Texts of other users there are no answers, and a
		// permission is not given by a number that may be meant for another user.
		asks = slices.DeleteFunc(slices.Clone(asks), func(a *msg.Ask) bool {
			return !a.Who.May(m.Sender) || a.IsPermission()
		})
	}
	if len(asks) != 1 { // of several, the text does not say which
		return nil, open, nil
	}
	return asks, open, nil
}

// open are the questions that were open in the place of a text when it was written.
func (f *reader) open(ctx context.Context, m *msg.Message) ([]*msg.Ask, error) {
	if !f.facts.Asks {
		return nil, nil
	}
	asks, err := factrows.ChatAsks(ctx, f.st.Reader, m.ChatJID, m.ThreadID)
	// A question about a budget is open for a day: a "no" or a number is hardly an answer to it.
	asks = slices.DeleteFunc(asks, func(a *msg.Ask) bool {
		return writtenBefore(m, a) || msg.IsBudget(a.AskID) &&
			(len(a.Options) == 0 || !strings.EqualFold(strings.TrimSpace(m.Content), a.Options[0]))
	})
	if err == nil && msg.FamilyOf(m.ChatJID) == msg.PlatformWeb { // each topic is a conversation of its own
		return f.inPlace(ctx, asks, msg.Place(m.ThreadID, m.Topic))
	}
	return asks, err
}

// lateArrival is how much later than it was written a message is, by clocks that may differ, if it was held up.
const lateArrival = time.Minute

// writtenBefore reports whether a user wrote a message before a question was asked, also if it comes later, as after an
// outage of the adapter. Its number is about something else, and a permission must not be given by it.
func writtenBefore(m *msg.Message, a *msg.Ask) bool {
	late := m.ReceivedAt-m.Timestamp > lateArrival.Milliseconds()
	return m.ID < a.MessageID || late && m.Timestamp < a.CreatedAt
}

// inPlace are the questions that are shown in a place of their chat.
func (f *reader) inPlace(ctx context.Context, asks []*msg.Ask, place string) (there []*msg.Ask, err error) {
	for _, a := range asks {
		row, err := f.st.Message(ctx, a.MessageID)
		if err != nil {
			return nil, err
		}
		if row != nil && row.Topic == place {
			there = append(there, a)
		}
	}
	return there, nil
}

// loadBallot reads the poll that a vote or the end of a poll is about.
func (f *reader) loadBallot(ctx context.Context, r *decide.Row) (err error) {
	b := &decide.Ballot{}
	r.Ballot = b
	row := int64(0)
	if r.Verb == msg.VerbVote {
		if b.Vote, err = msg.ParseVote(r.Content); err == nil {
			row = b.Vote.Row
		}
	} else if b.End, err = msg.ParsePollEnd(r.Content); err == nil {
		row = b.End.Row
	}
	if err != nil {
		return nil //nolint:nilerr // it names no poll
	}
	b.Poll, err = f.pollOf(ctx, r.Message, row)
	return err
}

// reactionBallot returns the vote that a reaction is, nil if it is none: where a platform has no polls, the numbered
// reactions to a poll's text are votes.
func (f *reader) reactionBallot(ctx context.Context, m *msg.Message) (*decide.Ballot, error) {
	limits, ok := msg.PollLimitsOf(m.ChatJID)
	if !ok || limits.Native || msg.ReactionVote(m.Content, msg.MaxPollOptions) == nil {
		return nil, nil
	}
	poll, err := f.pollOf(ctx, m, 0)
	if err != nil || poll == nil {
		return nil, err
	}
	vote := msg.ReactionVote(m.Content, len(poll.Poll.Options))
	if vote == nil {
		return nil, nil
	}
	return &decide.Ballot{Poll: poll, Vote: vote}, nil
}

// pollOf returns the poll that an outbound row is, or without one the target of a row; nil if that is
// no poll of the row's chat.
func (f *reader) pollOf(ctx context.Context, m *msg.Message, row int64) (poll *msg.StoredPoll, err error) {
	if row == 0 && m.TargetID != "" {
		target, err := f.st.MessageByPlatformID(ctx, m.ChatJID, m.TargetID)
		if err != nil || target == nil || target.Kind != msg.KindPoll {
			return nil, err
		}
		row = target.ID
	}
	if row == 0 {
		return nil, nil
	}
	if poll, err = factrows.PollOfMessage(ctx, f.st.Reader, row); err != nil || poll == nil ||
		poll.ChatJID != m.ChatJID {
		return nil, err
	}
	return poll, nil
}
