package tools

import (
	"context"
	"strings"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// placeOf returns the thread and the place of a topic of the caller's chat: "#name", a
// thread, or a fork such as "<thread>#fix". It returns a refusal for what is neither.
func (c *Caller) placeOf(ctx context.Context, r store.Reader, topic string) (thread, place string, err error) {
	if topic == c.Turn.Topic || topic == c.Turn.Place {
		return c.Turn.ThreadID, c.Turn.Place, nil
	}
	if fork, err := r.Fork(ctx, c.Turn.ChatJID, topic); err != nil || fork != nil && fork.Folder == c.Turn.Folder {
		if err != nil {
			return "", "", err
		}
		return fork.ThreadID, forkPlace(fork), nil
	}
	base, _, named := strings.Cut(topic, msg.TopicSigil)
	if named && !msg.ValidTopic(topic[len(base):]) {
		return "", "", refuse("topic %.80q is not valid: write # and a name of letters, digits, - and _, such as #deploy", topic)
	}
	if base != "" {
		known, err := c.isThread(ctx, r, base)
		if err != nil {
			return "", "", err
		}
		if !known {
			return "", "", refuse("this chat has no thread %.80q: leave topic out, or name a topic such as #deploy", base)
		}
		return base, topic, nil
	}
	if thread, err = r.ThreadOfTopic(ctx, c.Turn.ChatJID, topic); err != nil {
		return "", "", err
	}
	return thread, msg.Place(thread, topic), nil
}

// isThread reports whether the caller's chat has a thread.
func (c *Caller) isThread(ctx context.Context, r store.Reader, thread string) (bool, error) {
	if thread == c.Turn.ThreadID {
		return true, nil
	}
	return r.HasThread(ctx, c.Turn.ChatJID, thread)
}

// forkPlace is the topic of a message to a fork: its thread's place, or, in a place that
// it shares, its name.
func forkPlace(f *msg.Fork) string {
	if f.OwnThread {
		return f.ThreadID
	}
	return f.Topic
}
