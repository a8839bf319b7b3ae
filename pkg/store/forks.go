package store

import (
	"context"

	"arizuko/pkg/msg"
)

// Parts of queries. Of a thread it is the open fork, else the newest one.
const (
	forkColumns  = `chat_jid, topic, folder, thread_id, own_thread, message_id, created_at, ifnull(ended_at, 0)`
	ForkOfThread = `FROM forks n INDEXED BY forks_own_thread WHERE n.own_thread = 1 AND `
	NewestFork   = `ORDER BY n.ended_at IS NULL DESC, n.created_at DESC, n.topic DESC LIMIT 1`
)

func scanFork(scan Scan) (*msg.Fork, error) {
	var f msg.Fork
	err := scan(&f.ChatJID, &f.Topic, &f.Folder, &f.ThreadID, &f.OwnThread, &f.MessageID, &f.CreatedAt, &f.EndedAt)
	return &f, err
}

// Fork returns a fork, open or ended, nil if there is none of that topic.
func (r Reader) Fork(ctx context.Context, chatJID, topic string) (*msg.Fork, error) {
	return First(All(ctx, r, scanFork, `SELECT `+forkColumns+` FROM forks WHERE chat_jid = ? AND topic = ?`, chatJID, topic))
}

// ForkOfThread returns the fork whose own thread it is, the open one or the newest of those
// that have ended; nil for none.
func (r Reader) ForkOfThread(ctx context.Context, chatJID, thread string) (*msg.Fork, error) {
	return First(All(ctx, r, scanFork, `SELECT `+forkColumns+` `+ForkOfThread+`chat_jid = ? AND thread_id = ? `+NewestFork, chatJID, thread))
}

// EndFork ends a fork, if it is open.
func (tx *Tx) EndFork(chatJID, topic string, now int64) error {
	jid, err := tx.Address(Uncancelled(), chatJID)
	if err != nil {
		return err
	}
	return tx.Exec(`UPDATE forks SET ended_at = ? WHERE chat_jid = ? AND topic = ? AND ended_at IS NULL`,
		max(now, 1), jid, topic)
}

// RepliedForks returns the open forks of a place that a message replies to: those of the topic of the row that it
// answers or, where replies are not linked, all of the place.
func (r Reader) RepliedForks(ctx context.Context, m *msg.Message) (replied []*msg.Fork, err error) {
	linked := msg.LinksReplies(m.ChatJID, m.ThreadID)
	if linked && m.ReplyToID == "" {
		return nil, nil
	}
	// Of a place that forks share, the newest first.
	forks, err := All(ctx, r, scanFork, `SELECT `+forkColumns+
		` FROM forks INDEXED BY forks_open WHERE chat_jid = ? AND thread_id = ? AND own_thread = 0 AND ended_at IS NULL
			ORDER BY created_at DESC, topic DESC`,
		m.ChatJID, m.ThreadID)
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
