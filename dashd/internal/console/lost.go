package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter/plaintext"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// list shows the messages that were not delivered, dropped, or wait for an operator: counts by reason, and the
// messages of one.
func (c lostPages) list(r *http.Request) (*shown, error) {
	key := r.URL.Query().Get("reason")
	data, err := c.counts(r.Context(), key)
	if err == nil && data.Chosen != nil {
		err = c.addMessages(r, &data)
	}
	return &shown{data: data}, err
}

// confirm asks before all messages of a reason are replayed: those that have no copy yet, those before a message.
func (c lostPages) confirm(r *http.Request) (*shown, error) {
	ctx, query := r.Context(), r.URL.Query()
	data, err := c.counts(ctx, query.Get("reason"))
	if err != nil || data.Chosen == nil || !data.Chosen.Replay {
		return &shown{data: data}, err
	}
	before, err := position(query)
	if err != nil {
		return nil, err
	}
	page, err := c.uncopied(ctx, data.Chosen, before)
	if err != nil {
		return nil, err
	}
	data.Confirm = &pages.LostConfirm{Batch: lostBatch(page.Rows), Before: before, Next: page.Next}
	data.Confirm.Titles, err = c.titlesOf(ctx, page.Rows)
	return &shown{data: data}, err
}

// counts are the counts by reason. The reason with the key is chosen.
func (c lostPages) counts(ctx context.Context, key string) (data pages.Lost, err error) {
	dropped, err := rows.DroppedReasons(ctx, c.Store)
	if err != nil {
		return data, err
	}
	data.Now = c.Now().UnixMilli()
	for _, g := range []pages.LostGroup{
		{Title: "Not delivered", Reasons: undeliveredReasons()},
		{Title: "Not answered", Reasons: droppedReasons(dropped)},
		{Title: "Waiting for an operator", Reasons: []pages.LostReason{{
			Key: "parked", Title: msg.Onboarding.Words(), Filter: rows.MessageFilter{Disposition: msg.Onboarding},
			Text: "its chat is not connected: approve or reject it under Approvals",
		}}},
	} {
		found := pages.LostGroup{Title: g.Title}
		for _, l := range g.Reasons {
			if l.Count, err = rows.Count(ctx, c.Store, l.Filter, pages.MaxLostCount); err != nil {
				return data, err
			}
			if l.Key == key {
				data.Chosen = &l
			}
			if l.Count > 0 {
				found.Reasons = append(found.Reasons, l)
			}
		}
		if found.Reasons != nil {
			data.Groups = append(data.Groups, found)
		}
	}
	return data, nil
}

// undeliveredReasons are the classes of errors, and the states, of messages that were not delivered.
func undeliveredReasons() (all []pages.LostReason) {
	for _, each := range []struct {
		class       msg.ErrorClass
		title, text string
	}{
		{msg.Transient, "failing too long", "the platform kept failing"},
		{msg.Rate, "too many at once", "the platform kept asking to wait"},
		{msg.Permanent, "refused", "the platform refused it"},
		{msg.Expired, "out of time", "the platform was out of reach for too long"},
		{msg.Auth, "login refused", "the bot's credentials are wrong"},
		{msg.Ambiguous, "never confirmed", "the platform never said whether it arrived"},
	} {
		all = append(all, pages.LostReason{Key: "failed." + string(each.class), Title: each.title,
			Text: each.text, Replay: true, Filter: rows.MessageFilter{State: msg.OutFailed, Class: each.class}})
	}
	return append(all,
		pages.LostReason{Key: "cancelled", Title: "withdrawn", Replay: true,
			Text:   "it was withdrawn before it was delivered, for example by /stop",
			Filter: rows.MessageFilter{State: msg.OutCancelled}},
		pages.LostReason{Key: "ambiguous", Title: "may have arrived", Replay: true,
			Text: "it may have arrived; delivery was given up", Filter: rows.MessageFilter{State: msg.OutAmbiguous}})
}

// droppedReasons are the reasons of messages that were dropped.
func droppedReasons(codes []msg.Reason) (all []pages.LostReason) {
	for _, code := range codes {
		all = append(all, pages.LostReason{Key: "dropped." + string(code), Title: code.Words(),
			Text: cmp.Or(code.Meaning(), string(code)), Replay: worthReplaying(code),
			Filter: rows.MessageFilter{Disposition: msg.Dropped, Reason: code}})
	}
	return all
}

// worthReplaying reports whether a copy of a message that was dropped for a reason can end otherwise, once the cause
// is fixed. Edits, votes and second copies are not offered.
func worthReplaying(code msg.Reason) bool {
	return slices.Contains([]msg.Reason{
		msg.ReasonNoRoute, msg.ReasonNoGroup, msg.ReasonNoAccess, msg.ReasonRateLimit, msg.ReasonBuiltinDrop,
		msg.ReasonDaemonFailed, msg.ReasonStale, msg.ReasonRejected, msg.ReasonExpired, msg.ReasonOnboardingFull,
		msg.ReasonOnboardingLimit, msg.ReasonBotLoop, msg.ReasonStopped, msg.ReasonBadRow, msg.ReasonFanOut,
	}, code)
}

// addMessages adds a page of the messages of the chosen reason.
func (c lostPages) addMessages(r *http.Request, data *pages.Lost) (err error) {
	filter := data.Chosen.Filter
	if filter.Before, err = position(r.URL.Query()); err != nil {
		return err
	}
	filter.Limit = maxMessages
	data.List, data.Copies = &pages.Messages{}, map[int64]int64{}
	if err := messagePages(c).listInto(r, data.List, filter); err != nil {
		return err
	}
	for _, m := range data.List.Lines {
		if data.Copies[m.ID], err = factrows.CopyOf(r.Context(), c.Store, m.ID); err != nil {
			return err
		}
	}
	return nil
}

const (
	// maxReplays is how many messages are replayed at once: gated's limit.
	maxReplays = 200
	// maxReplayTime is how long one press of the button goes on with further steps.
	maxReplayTime = 3 * time.Second
)

// uncopied are messages of a reason that were not replayed yet, the newest first: those before one, 0 for the newest.
func (c lostPages) uncopied(ctx context.Context, l *pages.LostReason, before int64) (rows.MessagePage, error) {
	filter := l.Filter
	filter.Uncopied, filter.Before, filter.Limit = true, before, maxReplays
	return rows.ListMessages(ctx, c.Store, filter)
}

func lostBatch(messages []*msg.Message) pages.Batch {
	return batchOf(messages, func(m *msg.Message) (int64, string) { return m.ID, m.ChatJID })
}

// replay asks gated to copy messages that have no copy yet: those of a form, or all of a reason that are
// older than one.
func (c lostPages) replay(r *http.Request) (next, notice string, err error) {
	if r.PostForm.Get("all") != "" {
		return c.replayAll(r)
	}
	next = pages.LostPath(r.PostForm.Get("reason"))
	ids, err := idsIn(r.PostForm.Get("ids"), "message", maxReplays)
	if err != nil {
		return next, "", err
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
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	var done replayCount
	for begun := time.Now(); ; {
		page, err := c.uncopied(ctx, l, before)
		if err == nil && len(page.Rows) > 0 {
			err = c.replayIDs(ctx, lostBatch(page.Rows).IDs, &done)
		}
		if err != nil {
			return l.ConfirmPath(before), "", done.failed(err)
		}
		if before = page.Next; before == 0 {
			return pages.LostPath(key), done.String() + " That was all.", nil
		}
		if time.Since(begun) > maxReplayTime {
			return l.ConfirmPath(before), done.String() + " There are more: press again to continue.", nil
		}
	}
}

// replayCount is the result of a replay.
type replayCount struct {
	verb            string // "" is Replayed
	copied, skipped int
	why             string // of one that was left out
}

func (n *replayCount) String() string {
	text := fmt.Sprintf("%s: %d.", cmp.Or(n.verb, "Replayed"), n.copied)
	if n.skipped > 0 {
		text += fmt.Sprintf(" Left out: %d, such as: %s.", n.skipped, plaintext.Line(n.why))
	}
	return text
}

// failed is an error after which the same button goes on.
func (n *replayCount) failed(err error) error {
	return fmt.Errorf("%s Then it failed; press the button to continue. %w", n, err)
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
