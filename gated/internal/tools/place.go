package tools

import (
	"context"
	"strings"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// placeOf returns the thread and the place of a topic of a turn's chat: "#name", a
// thread, or a fork such as "<thread>#fix". It returns a refusal for anything else.
func placeOf(ctx context.Context, r store.Reader, t *msg.Turn, topic string) (thread, place string, err error) {
	if topic == t.Topic || topic == t.Place {
		return t.ThreadID, t.Place, nil
	}
	if thread, place, found, err := placeOfFork(ctx, r, t, topic); err != nil || found {
		return thread, place, err
	}
	base, _, named := strings.Cut(topic, msg.TopicSigil)
	if named && !msg.ValidTopic(topic[len(base):]) {
		return "", "", refuse("topic %.80q is not valid: write %s", topic, msg.TopicRule)
	}
	if base != "" {
		known := base == t.ThreadID
		if !known {
			known, err = rows.HasThread(ctx, r, t.ChatJID, base)
		}
		if err == nil && !known {
			err = refuse("this chat has no thread %.80q: leave topic out, or name a topic such as #deploy", base)
		}
		return base, topic, err
	}
	if thread, err = rows.ThreadOfTopic(ctx, r, t.ChatJID, topic); err != nil {
		return "", "", err
	}
	return thread, msg.Place(thread, topic), nil
}

// placeOfFork returns the thread and the place of a fork of a turn's group, or of the
// parent of the one that the turn is in; found is false for every other topic. It returns a
// refusal for a fork that has ended.
func placeOfFork(ctx context.Context, r store.Reader, t *msg.Turn, topic string) (thread, place string, found bool,
	err error) {
	current, err := r.Fork(ctx, t.ChatJID, t.Topic)
	if err != nil {
		return "", "", false, err
	}
	if current != nil && current.Folder == t.Folder && topic == current.Parent() {
		return current.ParentThread(), msg.Place(current.ParentThread(), topic), true, nil
	}
	fork, err := r.Fork(ctx, t.ChatJID, topic)
	if err != nil || fork == nil || fork.Folder != t.Folder {
		return "", "", false, err
	}
	if fork.EndedAt != 0 {
		return "", "", false, refuse("the fork %s is over: leave topic out, or begin another with fork_topic", topic)
	}
	return fork.ThreadID, fork.Place(), true, nil
}

// turnIn is the caller's turn in its own chat. In another chat it stands for one outside of threads and topics.
func (c *Caller) turnIn(jid string) *msg.Turn {
	if jid == c.Turn.ChatJID {
		return c.Turn
	}
	return &msg.Turn{Folder: c.Turn.Folder, ChatJID: jid}
}

// checkTakes returns a refusal if a chat takes no message in a place: outside of the posts of a forum. instead is the
// advice for that.
func checkTakes(ctx context.Context, r store.Reader, jid, thread, instead string) error {
	if thread != "" {
		return nil
	}
	has, err := rows.HasTopLevel(ctx, r, jid)
	if err == nil && !has {
		err = refuse("chat %.100q is a forum, where all messages are in posts: %s", jid, instead)
	}
	return err
}

// given is an argument that may be left out: nil for "".
func given(argument string) *string {
	if argument == "" {
		return nil
	}
	return &argument
}
