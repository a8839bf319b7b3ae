package tools

import (
	"context"
	"strings"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// placeOf returns the thread and the place of a topic of the caller's chat: "#name", a
// thread, or a fork such as "<thread>#fix". It returns a refusal for what is neither.
func (c *Caller) placeOf(ctx context.Context, r store.Reader, topic string) (thread, place string, err error) {
	if topic == c.Turn.Topic || topic == c.Turn.Place {
		return c.Turn.ThreadID, c.Turn.Place, nil
	}
	if thread, place, found, err := c.placeOfFork(ctx, r, topic); err != nil || found {
		return thread, place, err
	}
	base, _, named := strings.Cut(topic, msg.TopicSigil)
	if named && !msg.ValidTopic(topic[len(base):]) {
		return "", "", refuse("topic %.80q is not valid: write %s", topic, msg.TopicRule)
	}
	if base != "" {
		known, err := c.isThread(ctx, r, base)
		if err != nil {
			return "", "", err
		}
		if !known {
			return "", "", refuse("this chat has no thread %.80q: leave topic out, or name a topic such as #deploy",
				base)
		}
		return base, topic, nil
	}
	if thread, err = rows.ThreadOfTopic(ctx, r, c.Turn.ChatJID, topic); err != nil {
		return "", "", err
	}
	return thread, msg.Place(thread, topic), nil
}

// isThread reports whether the caller's chat has a thread.
func (c *Caller) isThread(ctx context.Context, r store.Reader, thread string) (bool, error) {
	if thread == c.Turn.ThreadID {
		return true, nil
	}
	return rows.HasThread(ctx, r, c.Turn.ChatJID, thread)
}

// placeOfFork returns the thread and the place of a fork of the caller's group, or of the
// parent of the one that it works in; found is false for every other topic. It returns a
// refusal for a fork that has ended.
func (c *Caller) placeOfFork(ctx context.Context, r store.Reader, topic string) (thread, place string, found bool,
	err error) {
	current, err := r.Fork(ctx, c.Turn.ChatJID, c.Turn.Topic)
	if err != nil {
		return "", "", false, err
	}
	if current != nil && current.Folder == c.Turn.Folder && topic == current.Parent() {
		return current.ParentThread(), msg.Place(current.ParentThread(), topic), true, nil
	}
	fork, err := r.Fork(ctx, c.Turn.ChatJID, topic)
	if err != nil || fork == nil || fork.Folder != c.Turn.Folder {
		return "", "", false, err
	}
	if fork.EndedAt != 0 {
		return "", "", false, refuse("the fork %s is over: leave topic out, or begin another with fork_topic", topic)
	}
	return fork.ThreadID, fork.Place(), true, nil
}

// checkTakes returns a refusal if a chat takes no message in a place: outside of the posts of a forum. instead says
// what to do then.
func (c *Caller) checkTakes(ctx context.Context, r store.Reader, jid, thread, instead string) error {
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
