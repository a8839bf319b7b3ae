package store

import (
	"context"
	"fmt"

	"arizuko/pkg/msg"
)

// Fork returns a fork that was not ended, nil if there is none of that topic.
func (r Reader) Fork(ctx context.Context, chatJID, topic string) (*msg.Fork, error) {
	var f msg.Fork
	found, err := r.q.get(ctx, []any{&f.ChatJID, &f.Topic, &f.Folder, &f.ThreadID, &f.OwnThread, &f.MessageID, &f.CreatedAt}, queryFork, chatJID, topic)
	if err != nil || !found {
		return nil, err
	}
	return &f, nil
}

// ForkTaken reports whether a topic cannot become a fork of a group in a chat: it is one
// already, in any chat, or a thread is bound to it.
func (r Reader) ForkTaken(ctx context.Context, folder, chatJID, topic string) (taken bool, err error) {
	_, err = r.q.get(ctx, []any{&taken}, queryForkTaken, folder, chatJID, topic)
	return taken, err
}

// PutFork stores a fork, and binds its own thread. A topic that is a fork already is an
// ErrRefused.
func (tx *Tx) PutFork(f *msg.Fork) error {
	jid, err := tx.Address(uncancelled(), f.ChatJID)
	if err != nil {
		return err
	}
	if _, err := tx.exec(insertFork, jid, f.Topic, f.Folder, f.ThreadID, f.OwnThread, f.MessageID, f.CreatedAt); err != nil {
		return fmt.Errorf("fork %s: %w", f.Topic, err)
	}
	if !f.OwnThread {
		return nil
	}
	return tx.BindThread(jid, f.ThreadID, f.Topic)
}

// EndFork ends a fork. A thread of its own stays bound.
func (tx *Tx) EndFork(chatJID, topic string) error {
	jid, err := tx.Address(uncancelled(), chatJID)
	if err != nil {
		return err
	}
	_, err = tx.exec(deleteFork, jid, topic)
	return err
}

// ForkOfRow is the fork that a message runs in since it replies to one of the fork's; "" for none. In
// a thread whose replies do not say what they answer, all messages run in its newest fork.
func (r Reader) ForkOfRow(ctx context.Context, m *msg.Message) (topic string, err error) {
	linked := msg.LinksReplies(m.ChatJID, m.ThreadID)
	if linked && m.ReplyToID == "" {
		return "", nil
	}
	forks, err := collect(ctx, r.q, one[string], queryForksInside, m.ChatJID, m.ThreadID)
	if err != nil || len(forks) == 0 {
		return "", err
	}
	if !linked {
		return forks[0], nil
	}
	target, err := r.MessageByPlatformID(ctx, m.ChatJID, m.ReplyToID)
	if err != nil || target == nil || target.Direction != msg.Out {
		return "", err
	}
	t, err := r.Turn(ctx, target.TurnID)
	if err != nil {
		return "", err
	}
	for _, fork := range forks {
		if target.Topic == fork || t != nil && t.Topic == fork {
			return fork, nil
		}
	}
	return "", nil
}

// LastAnswer is the newest message of a group's agent in a place of a chat, 0 for none.
func (r Reader) LastAnswer(ctx context.Context, folder, chatJID, place string) (id int64, err error) {
	_, err = r.q.get(ctx, []any{&id}, queryLastAnswer, chatJID, place, folder)
	return id, err
}
