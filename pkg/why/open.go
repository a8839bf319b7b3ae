package why

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// StillOpen lists everything that has not ended yet, and since when or until when it waits, and the remedy for a row
// that went nowhere.
func StillOpen(p *Path, now time.Time) (all []Open) {
	age := func(since int64) time.Duration { return now.Sub(time.UnixMilli(since)).Round(time.Millisecond) }
	for _, m := range p.Rows {
		switch {
		case m.Disposition == "":
			_, holder := p.Daemons.Missing(now.UnixMilli(), facts.Deciders()...)
			all = append(all, Open{Text: fmt.Sprintf("message %d is undecided for %s: %s", m.ID, age(m.ReceivedAt),
				cmp.Or(holder, "held by the gate, or waiting for routd, for onbod or another service")),
				Owner: gated, Row: m.ID})
		case m.Disposition == msg.Onboarding:
			text := fmt.Sprintf("message %d is parked: %s", m.ID, parked(p.Request))
			all = append(all, Open{Text: text, Owner: "onbod", Row: m.ID,
				Page: facts.Page{Path: "/approvals", Text: "Decide requests", Fix: "its chat has no group yet"}})
		case m.Reason == msg.ReasonNoRoute:
			page := facts.UnroutedPage(m)
			all = append(all, Open{Text: facts.Unrouted(m), Owner: "an operator", Row: m.ID, Page: page})
		}
	}
	for _, t := range p.Turns {
		if t.EndedAt == 0 {
			all = append(all, Open{Text: p.openTurn(t, now), Owner: gated, Turn: t.ID})
		}
		for _, u := range t.Undos {
			if u.EndedAt == 0 {
				all = append(all, Open{Text: fmt.Sprintf("turn %d %s", t.ID, Undone(u)), Owner: gated, Turn: t.ID})
			}
		}
		for _, a := range t.Asks {
			if open, ok := openAsk(a.Ask, now); ok {
				all = append(all, open)
			}
		}
		for _, r := range t.Replies {
			all = append(all, p.openReply(r, now)...)
		}
	}
	if p.Choice != nil && p.Choice.Ask != nil { // a choice that did not count
		if open, ok := openAsk(p.Choice.Ask, now); ok {
			all = append(all, open)
		}
	}
	for _, r := range p.Replies {
		all = append(all, p.openReply(r, now)...)
	}
	return all
}

// parked is the reason why a row is parked, in words.
func parked(r *factrows.Request) string {
	switch {
	case r == nil:
		return "its chat had no group; the request is decided by now, or a route was added, and gated decides " +
			"the row at once"
	case r.Noted():
		return fmt.Sprintf("its chat has no group yet; onbod carries out that %s approved request %s into %s",
			r.DecidedBy, r.Code, r.Folder)
	}
	return fmt.Sprintf("its chat has no group yet; it waits until an operator decides request %s "+
		"(%s), or a route is added for the chat", r.Code, facts.DecideRequest(r.Code))
}

func (p *Path) openTurn(t *Turn, now time.Time) string {
	text := fmt.Sprintf("turn %d is %s for %s", t.ID, t.State,
		now.Sub(time.UnixMilli(cmp.Or(t.StartedAt, t.CreatedAt))).Round(time.Millisecond))
	if t.Attempts > 0 {
		text += fmt.Sprintf(", failed attempts: %d", t.Attempts)
	}
	if wait := time.UnixMilli(t.NotBefore).Sub(now); t.State == msg.TurnQueued && wait > 0 {
		text += fmt.Sprintf(", next in %s", wait.Round(time.Millisecond))
		if t.WaitsFor != "" {
			text += ": " + t.WaitsFor.Meaning()
		}
	}
	if _, trouble := p.Daemons.Missing(now.UnixMilli(), gated); trouble != "" {
		text += ", " + trouble
	}
	return text + problem(t)
}

// problem is a turn's last failure.
func problem(t *Turn) string {
	if t.Error == "" {
		return ""
	}
	text, _, _ := strings.Cut(t.Error, "\n") // the lines after it are a stack
	if t.ErrorKind != "" {
		return fmt.Sprintf(", %s error: %s", t.ErrorKind, text)
	}
	return ", error: " + text
}

func (p *Path) openReply(r *Reply, now time.Time) (all []Open) {
	add := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		all = append(all, Open{Text: text, Owner: msg.DaemonOf(r.ChatJID), Row: r.ID, Turn: r.TurnID})
	}
	switch r.OutState {
	case msg.OutQueued:
		add("message %d waits to be sent: %s", r.ID, p.Daemons.Unsent(r.ChatJID, now.UnixMilli()))
	case msg.OutSending:
		add("message %d is being delivered", r.ID)
	case msg.OutAmbiguous:
		add("message %d: the platform did not say whether it arrived", r.ID)
	case msg.OutFailed:
		add("message %d was not delivered and is not tried again", r.ID)
	case msg.OutCancelled:
		add("message %d was cancelled before it was delivered", r.ID)
	}
	for _, part := range r.Parts {
		if wait := time.UnixMilli(part.NotBefore).Sub(now); wait > 0 &&
			(part.State == msg.OutQueued || part.State == msg.OutSending) {
			add("message %d part %d: next attempt in %s", r.ID, part.Part, wait.Round(time.Millisecond))
		}
	}
	return all
}
