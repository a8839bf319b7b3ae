// Package events receives Telegram's updates by long polling.
package events

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/chatmove"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	"arizuko/teled/internal/bot"
	"arizuko/teled/internal/inbound"
	"arizuko/teled/internal/telegramapi"
)

const (
	// cursor is the key of the id of the update to read next.
	cursor = bot.OffsetKey
	// pollTimeout is how long Telegram waits for an update before it answers with none. A longer one
	// would only save calls: a poll that is lost is noticed after pollTimeout and ConnectTimeout.
	pollTimeout = 5 * time.Second
	// ballotDelay is pollTimeout while votes wait for a poll that is being sent.
	ballotDelay = time.Second
	// emptyDelay is the pause after a poll that returned at once without an update: some servers do not wait.
	emptyDelay = time.Second
	// answerTimeout bounds the answer to the press of a button, for which later updates wait.
	answerTimeout = 3 * time.Second
	// nameEvery is how often the bot's name is read again: @BotFather may give it another one at any time, by which
	// users mention it from then on.
	nameEvery = 5 * time.Minute
	// contestedFor is how long another program is named after it read the bot's updates last: one that reads now and
	// then takes some of them each time.
	contestedFor = 15 * time.Minute
	// movesEvery is how often rows under former addresses are looked for.
	movesEvery = 5 * time.Second
)

// updates are the kinds of updates that are read; some are only sent if they are named.
var updates = []string{"message", "edited_message", "channel_post", "edited_channel_post", "message_reaction",
	"my_chat_member", "chat_member", "poll", "poll_answer", "callback_query"}

// Listener implements adapter.Listener. Its exported fields are set once.
type Listener struct {
	API   *telegramapi.Client
	Bot   *bot.Bot
	Store *store.Store
	Local bool // the server is run with --local

	convert func(*telegramapi.Update, inbound.Self) (adapter.Inbound, error) // nil: inbound.Convert
	ballots *adapter.Ballots                                                 // set by Listen
	admins  admins

	contested bool // another program read the bot's updates when the last connection ended
}

// Listen implements adapter.Listener.
func (l *Listener) Listen(ctx context.Context, s *adapter.Shell) error {
	me, err := l.me(ctx, s.Platform)
	if err != nil {
		return telegramapi.ConnectionError(err)
	}
	if err := l.note(ctx, s.Daemon, msg.LocalServer, l.Local); err != nil {
		return err
	}
	if err := l.note(ctx, s.Daemon, msg.PrivacyMode, !me.ReadsAll); err != nil {
		return err
	}
	value, err := l.Store.DaemonCursor(ctx, s.Daemon, cursor)
	if err != nil {
		return err
	}
	offset, _ := strconv.ParseInt(value, 10, 64) // 0 if nothing has been read
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	firstPoll := time.Duration(0) // shows whether polls work
	if l.contested {
		firstPoll = pollTimeout // one that returns at once would end before the other reader does anything
	}
	l.ballots = l.newBallots(s.Daemon, me)
	if err := l.ballots.Load(ctx, s); err != nil {
		return err
	}
	beside.Go(func() { finishMoves(ctx, s) })
	named := s.Now()
	for wait, online := firstPoll, false; ; wait = pollTimeout {
		if _, err := l.ballots.Retry(ctx, s); err != nil {
			return err
		}
		if l.ballots.Waiting() {
			wait = min(wait, ballotDelay)
		}
		began := s.Now()
		batch, err := l.poll(ctx, offset, wait)
		if err != nil {
			l.contested = telegramapi.Conflict(err)
			if telegramapi.OtherReader(err) {
				s.CompeteFor(contestedFor, "another program has read this bot's updates in the last quarter of an "+
					"hour: stop it, or use another bot for it; what it reads does not come here")
			}
			return telegramapi.ConnectionError(err)
		}
		s.Connected()
		if s.Now().Sub(named) >= nameEvery {
			me, named = l.renamed(ctx, s, me), s.Now()
		}
		if !online {
			online, l.contested = true, false
			beside.Go(func() { l.offerMenus(ctx, s) })
		}
		if len(batch) == 0 && s.Now().Sub(began) < wait/2 {
			adapter.Pause(ctx, emptyDelay)
		}
		for _, raw := range inOrder(batch) {
			if offset, err = l.receive(ctx, s, me, raw, offset); err != nil {
				return err
			}
		}
	}
}

// note stores a fact about the bot for other daemons: a cursor is there while it holds.
func (l *Listener) note(ctx context.Context, daemon, key string, is bool) error {
	value, err := l.Store.DaemonCursor(ctx, daemon, key)
	if err != nil || (value != "") == is {
		return err
	}
	fact := &adapter.Cursor{Key: key}
	if is {
		fact.Value = "true"
	}
	return l.Store.Write(ctx, func(tx *store.Tx) error { return fact.Write(tx, daemon) })
}

// finishMoves moves the rest of groups that became supergroups, after a restart too, until ctx
// ends.
func finishMoves(ctx context.Context, s *adapter.Shell) {
	for ctx.Err() == nil {
		_, err := chatmove.Finish(ctx, s.Store, s.Now().UnixMilli())
		if err != nil && ctx.Err() == nil {
			s.Log.Error("moving chat failed; retrying", "wait", movesEvery, "err", err)
		}
		adapter.Pause(ctx, movesEvery)
	}
}

// poll reads updates, and waits for one if there is none.
func (l *Listener) poll(ctx context.Context, offset int64, wait time.Duration) (batch []json.RawMessage, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait+adapter.ConnectTimeout)
	defer cancel()
	err = l.API.Call(ctx, "getUpdates", telegramapi.Params{
		"offset": offset, "timeout": int64(wait / time.Second), "allowed_updates": updates,
	}, &batch)
	return batch, err
}

func (l *Listener) me(ctx context.Context, platform string) (me inbound.Self, err error) {
	user, mark, err := l.Bot.Learn(ctx)
	return inbound.Self{Platform: platform, ID: user.ID, Username: user.Username,
		ReadsAll: user.CanReadAllGroupMessages, Mark: mark}, err
}

// renamed is the bot with the name that it has now. A call that fails is made again later.
func (l *Listener) renamed(ctx context.Context, s *adapter.Shell, me inbound.Self) inbound.Self {
	now, err := l.me(ctx, me.Platform)
	if err != nil || now.ID != me.ID || now.Username == me.Username {
		return me
	}
	s.Log.Info("bot renamed", "state", "@"+now.Username)
	return now
}

// receive stores one update together with the offset after it, and returns that offset. It retries
// until ctx ends. An update that cannot be decoded is skipped.
func (l *Listener) receive(ctx context.Context, s *adapter.Shell, me inbound.Self, raw json.RawMessage,
	offset int64) (int64, error) {
	var u telegramapi.Update
	var in adapter.Inbound
	err := json.Unmarshal(raw, &u)
	if u.ID == 0 { // even an invalid update needs an id
		u.ID = updateID(raw, offset)
	}
	s.Decode("update "+strconv.FormatInt(u.ID, 10), func() error {
		if err != nil {
			return err
		}
		convert := l.convert
		if convert == nil {
			convert = inbound.Convert
		}
		in, err = convert(&u, me)
		return err
	})
	next := u.ID + 1
	after := &adapter.Cursor{Key: cursor, Value: strconv.FormatInt(next, 10)}
	if ref := inbound.PollRef(&u); ref != "" {
		if in, err = l.ballots.Receive(ctx, s, adapter.Ballot{Ref: ref, Event: raw}, after); err != nil {
			return offset, err
		}
	}
	if m := u.Message; m != nil && m.Text != "" && len(in.Messages) == 1 {
		if err := s.Retry(ctx, "reading message failed; retrying", func() error {
			return l.groupPiece(ctx, in.Messages[0], render.UTF16Len(m.Text))
		}); err != nil {
			return offset, err
		}
	}
	in.Admins = l.adminsOf(ctx, s, &u, in.Messages)
	in.Cursor = after
	if u.CallbackQuery != nil {
		return next, l.receivePress(ctx, s, u.CallbackQuery, in)
	}
	return next, s.ReceiveAlways(ctx, in)
}

// unknownNotice answers the press of a button that is none of teled's: of another program that had the bot before, of a
// game, or one that was forged.
const unknownNotice = "This button is not in use any more."

// receivePress stores the press of a button, then ends the wait that Telegram shows its user: with a text if the press
// does not count. The offset is stored after that: if teled is killed in between, Telegram sends the update again,
// whose row is known, and its user gets the answer then. A press whose answer fails is stored all the same.
func (l *Listener) receivePress(ctx context.Context, s *adapter.Shell, q *telegramapi.CallbackQuery,
	in adapter.Inbound) error {
	after, notice := in.Cursor, unknownNotice
	in.Cursor = nil
	if len(in.Messages) > 0 {
		var err error
		if notice, err = s.ReceivePress(ctx, in); err != nil {
			return err
		}
	}
	l.answerPress(ctx, s, q.ID, notice)
	return s.ReceiveAlways(ctx, adapter.Inbound{Cursor: after})
}

// answerPress answers the press of a button. A failure is only logged.
func (l *Listener) answerPress(ctx context.Context, s *adapter.Shell, id, notice string) {
	if id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := l.API.AnswerPress(ctx, id, notice); err != nil {
		s.Log.Warn("press not answered; Telegram shows its user a wait", "event", "callback_query "+id, "err", err)
	}
}

// newBallots finds polls by Telegram's id: updates about votes and closed polls name neither chat nor message.
func (l *Listener) newBallots(daemon string, me inbound.Self) *adapter.Ballots {
	return &adapter.Ballots{
		Find: func(ctx context.Context, b *adapter.Ballot) (*msg.Message, error) {
			return rows.MessageByPollRef(ctx, l.Store.Reader, daemon, b.Ref)
		},
		Make: func(b *adapter.Ballot, poll *msg.Message) (adapter.Inbound, error) {
			var u telegramapi.Update
			err := json.Unmarshal(b.Event, &u)
			return inbound.Ballot(&u, poll, me), err
		},
	}
}

// inOrder sorts updates by their ids: the offset that is stored with one counts all before it as read. An
// update without an id stays behind the one before it.
func inOrder(batch []json.RawMessage) []json.RawMessage {
	type update struct {
		id  int64
		raw json.RawMessage
	}
	updates, last := make([]update, len(batch)), int64(0)
	for i, raw := range batch {
		last = cmp.Or(updateID(raw, 0), last)
		updates[i] = update{last, raw}
	}
	slices.SortStableFunc(updates, func(a, b update) int { return cmp.Compare(a.id, b.id) })
	for i, u := range updates {
		batch[i] = u.raw
	}
	return batch
}

// updateID reads the id of an update that is otherwise invalid. Without one it returns offset, the id
// that was asked for.
func updateID(raw json.RawMessage, offset int64) int64 {
	var u struct {
		ID int64 `json:"update_id"`
	}
	_ = json.Unmarshal(raw, &u) // partial decoding is fine: only update_id is needed
	return max(u.ID, offset)
}
