package store

import (
	"context"
	"fmt"

	"arizuko/pkg/msg"
)

// Parts of queries. Of a thread it is the open fork, else the newest one.
const (
	forkColumns  = `chat_jid, topic, folder, thread_id, own_thread, message_id, created_at, ifnull(ended_at, 0)`
	forkOfThread = `FROM forks n INDEXED BY forks_own_thread WHERE n.own_thread = 1 AND `
	newestFork   = `ORDER BY n.ended_at IS NULL DESC, n.created_at DESC, n.topic DESC LIMIT 1`
)

func scanFork(scan scanner) (*msg.Fork, error) {
	var f msg.Fork
	err := scan(&f.ChatJID, &f.Topic, &f.Folder, &f.ThreadID, &f.OwnThread, &f.MessageID, &f.CreatedAt, &f.EndedAt)
	return &f, err
}

// firstFork returns the only fork that a query finds, nil for none.
func (r Reader) firstFork(ctx context.Context, query string, args ...any) (*msg.Fork, error) {
	found, err := collect(ctx, r, scanFork, query, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// Fork returns a fork, open or ended, nil if there is none of that topic.
func (r Reader) Fork(ctx context.Context, chatJID, topic string) (*msg.Fork, error) {
	return r.firstFork(ctx, queryFork, chatJID, topic)
}

// ForkOfThread returns the fork whose own thread it is, the open one or the newest of those
// that have ended; nil for none.
func (r Reader) ForkOfThread(ctx context.Context, chatJID, thread string) (*msg.Fork, error) {
	return r.firstFork(ctx, queryForkOfThread, chatJID, thread)
}

// OpenForks are the topics of the open forks of a group in a chat, the oldest first, at most limit.
func (r Reader) OpenForks(ctx context.Context, folder, chatJID string, limit int) ([]string, error) {
	return collect(ctx, r, one[string], queryOpenForks, chatJID, folder, limit)
}

// ForkTaken reports whether a topic cannot become a fork of a group in a chat: there is or
// was such a fork in the chat, the group has an open one in another chat, whose session it
// would share, or users have begun the topic.
func (r Reader) ForkTaken(ctx context.Context, folder, chatJID, topic string) (bool, error) {
	return value[bool](ctx, r, queryForkTaken, folder, chatJID, topic)
}

// LastFork is the highest number that a correction has in a chat, 0 for none. first is the
// topic of number 1.
func (r Reader) LastFork(ctx context.Context, chatJID, first string) (int, error) {
	return value[int](ctx, r, queryLastFork, chatJID, first)
}

// PutFork stores an open fork. A topic that is or was a fork of the chat is an ErrRefused.
func (tx *Tx) PutFork(f *msg.Fork) error {
	jid, err := tx.Address(uncancelled(), f.ChatJID)
	if err != nil {
		return err
	}
	if err := tx.exec(insertFork, jid, f.Topic, f.Folder, f.ThreadID, f.OwnThread, f.MessageID,
		f.CreatedAt); err != nil {
		return fmt.Errorf("fork %s: %w", f.Topic, err)
	}
	return nil
}

// EndFork ends a fork, if it is open.
func (tx *Tx) EndFork(chatJID, topic string, now int64) error {
	jid, err := tx.Address(uncancelled(), chatJID)
	if err != nil {
		return err
	}
	return tx.exec(endFork, max(now, 1), jid, topic)
}

// AbandonFork ends a fork whose own thread cannot be opened, if it is open: the group's next prompt says so. what
// became of the message for it is a sentence of that.
func (tx *Tx) AbandonFork(fork *msg.Fork, what string, now int64) error {
	if fork.EndedAt != 0 {
		return nil
	}
	if err := tx.EndFork(fork.ChatJID, fork.Topic, now); err != nil {
		return err
	}
	body := fmt.Sprintf("The fork %s of chat %s is over: its thread could not be opened. %s Correct the answer in topic %q.", fork.Topic, fork.ChatJID, what, fork.Parent())
	return tx.PutSystemMessage(fork.Folder, "gated", "fork_failed", body, now)
}

// ForksOfRow are the forks that a message may run in, those of all groups, the first of a
// group being its own: forks of the message's place that it replies to, then the one whose
// own thread it is in, which may have ended. In a thread whose replies do not say what they
// answer, a message replies to every fork, the newest first.
func (r Reader) ForksOfRow(ctx context.Context, m *msg.Message) ([]*msg.Fork, error) {
	forks, err := r.repliedForks(ctx, m)
	if err != nil || m.ThreadID == "" {
		return forks, err
	}
	own, err := r.ForkOfThread(ctx, m.ChatJID, m.ThreadID)
	if err != nil || own == nil {
		return forks, err
	}
	return append(forks, own), nil
}

func (r Reader) repliedForks(ctx context.Context, m *msg.Message) (replied []*msg.Fork, err error) {
	linked := msg.LinksReplies(m.ChatJID, m.ThreadID)
	if linked && m.ReplyToID == "" {
		return nil, nil
	}
	forks, err := collect(ctx, r, scanFork, queryForksInside, m.ChatJID, m.ThreadID)
	if err != nil || len(forks) == 0 || !linked {
		return forks, err
	}
	target, err := r.MessageByPlatformID(ctx, m.ChatJID, m.ReplyToID)
	if err != nil || target == nil || target.Direction != msg.Out {
		return nil, err
	}
	t, err := r.Turn(ctx, target.TurnID)
	if err == nil && t != nil && t.Kind == msg.Delegated { // its answer stands for that of the turn that asked
		t, err = r.Turn(ctx, t.Root())
	}
	if err != nil || t == nil {
		return nil, err
	}
	for _, f := range forks {
		if f.Folder == t.Folder && (target.Topic == f.Topic || t.Topic == f.Topic) {
			replied = append(replied, f)
		}
	}
	return replied, nil
}

// LastAnswer is the newest message of a group's agent in a place of a chat, 0 for none.
func (r Reader) LastAnswer(ctx context.Context, folder, chatJID, place string) (int64, error) {
	return value[int64](ctx, r, queryLastAnswer, chatJID, place, folder)
}
