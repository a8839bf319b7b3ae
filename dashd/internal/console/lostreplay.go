package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

const (
	// maxReplays is how many messages are replayed at once: gated's limit.
	maxReplays = 200
	// maxReplayPages bounds how far one step looks for messages without a copy.
	maxReplayPages = 5
	// maxReplayTime is how long one press of the button goes on with further steps.
	maxReplayTime = 3 * time.Second
)

// nextReplays looks for messages of a reason that have no copy yet, the newest first: those older than one, 0 for the
// newest. next is the message after which to continue, 0 for none.
func (c lostPages) nextReplays(ctx context.Context, l *pages.LostReason, before int64) (found []*msg.Message,
	next int64, err error) {
	filter := l.Filter
	filter.Limit, filter.Before = maxReplays, before
	for range maxReplayPages {
		page, err := rows.ListMessages(ctx, c.Store, filter)
		if err != nil {
			return nil, 0, err
		}
		for _, m := range page.Rows {
			copied, err := factrows.CopyOf(ctx, c.Store, m.ID)
			if err != nil {
				return nil, 0, err
			}
			if copied != 0 || !replayable(m) {
				continue
			}
			if found = append(found, m); len(found) == maxReplays {
				return found, m.ID, nil
			}
		}
		if next = page.Next; next == 0 {
			break
		}
		filter.Before = next
	}
	return found, next, nil
}

func idsOf(messages []*msg.Message) (ids []int64) {
	for _, m := range messages {
		ids = append(ids, m.ID)
	}
	return ids
}

// confirmReplay describes the messages to replay: those of a reason that have no copy yet, those before a message.
func (c lostPages) confirmReplay(r *http.Request, l *pages.LostReason) (*pages.LostConfirm, error) {
	ctx := r.Context()
	before, err := position(r.URL.Query())
	if err != nil {
		return nil, err
	}
	found, next, err := c.nextReplays(ctx, l, before)
	if err != nil {
		return nil, err
	}
	confirm := &pages.LostConfirm{IDs: strings.Trim(fmt.Sprint(idsOf(found)), "[]"), Count: len(found),
		Before: before, Next: next}
	for _, m := range found {
		i := slices.IndexFunc(confirm.Chats, func(known pages.LostChat) bool { return known.JID == m.ChatJID })
		if i < 0 {
			confirm.Chats, i = append(confirm.Chats, pages.LostChat{JID: m.ChatJID}), len(confirm.Chats)
		}
		confirm.Chats[i].Count++
	}
	confirm.Titles, err = c.titlesOf(ctx, found)
	return confirm, err
}

// replay asks gated to copy messages that have no copy yet: those of a form, or all of a reason that are
// older than one.
func (c lostPages) replay(r *http.Request) (next, notice string, err error) {
	if r.PostForm.Get("all") != "" {
		return c.replayAll(r)
	}
	next = pages.LostPath(r.PostForm.Get("reason"))
	var ids []int64
	for field := range strings.FieldsSeq(r.PostForm.Get("ids")) {
		id, err := idOf(field, "message")
		if err != nil || len(ids) == maxReplays {
			return next, "", apierr.New(apierr.BadRequest, "The form is incomplete: start again.")
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return next, "", apierr.New(apierr.BadRequest, "No message was chosen.")
	}
	var done replayCount
	err = c.replayIDs(r.Context(), ids, &done)
	return next, done.String(), err
}

// replayAll replays step by step until maxReplayTime is over: the page then goes on where it stopped. It goes from
// newer to older messages, so that a copy which is lost again is not copied too. Each step is one transaction of gated:
// after a failure the same button goes on, and copies none twice.
func (c lostPages) replayAll(r *http.Request) (next, notice string, err error) {
	key := r.PostForm.Get("reason")
	before, err := position(r.PostForm)
	if err != nil {
		return "/lost", "", err
	}
	data, err := c.counts(r.Context(), key)
	l := data.Chosen
	if err != nil || l == nil || !l.Replay {
		return pages.LostPath(key), "There are none left.", err
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	var done replayCount
	for {
		found, next, err := c.nextReplays(ctx, l, before)
		if err == nil && len(found) > 0 {
			err = c.replayIDs(ctx, idsOf(found), &done)
		}
		if err != nil {
			return l.ConfirmPath(before), "", fmt.Errorf("%s Then it failed; press the button to continue. %w", done.String(),
				err)
		}
		late := time.Since(begun) > maxReplayTime
		if before = next; late && before != 0 {
			if found, next, err := c.nextReplays(ctx, l, before); err == nil && len(found) == 0 && next == 0 {
				before = 0
			}
		}
		if before == 0 {
			return pages.LostPath(key), done.String() + " That was all.", nil
		}
		if late {
			return l.ConfirmPath(before), done.String() + " There are more: press again to continue.", nil
		}
	}
}

// replayCount is the result of a replay.
type replayCount struct {
	copied, skipped int
	why             string // of one that was left out
}

func (n *replayCount) String() string {
	text := fmt.Sprintf("Replayed: %d.", n.copied)
	if n.skipped > 0 {
		text += fmt.Sprintf(" Left out: %d, such as: %s.", n.skipped, plaintext.Line(n.why))
	}
	return text
}

// replayIDs asks gated to copy messages, in one transaction.
func (c lostPages) replayIDs(ctx context.Context, ids []int64, done *replayCount) error {
	var answer struct {
		Messages []struct {
			ID, Copy int64
			Skipped  string
		}
	}
	if err := c.ask(ctx, "gated", http.MethodPost, "/v1/messages/replay", map[string]any{"ids": ids},
		&answer); err != nil {
		return err
	}
	for _, m := range answer.Messages {
		if m.Copy != 0 {
			done.copied++
		} else {
			done.skipped, done.why = done.skipped+1, m.Skipped
		}
	}
	return nil
}
