package why

import (
	"strings"
	"testing"
	"time"

	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestBrief(t *testing.T) {
	for name, p := range map[string]*Path{
		"answered": answered(), "failing": failing(), "undecided": undecided(), "outbound": outbound(), "hostile": hostile(), "undone": undone(),
	} {
		t.Run(name, func(t *testing.T) {
			p.Daemons = running()
			text := Brief(p, time.UnixMilli(at(10_000)).UTC())
			golden.Compare(t, "testdata/brief-"+name+".txt", text+"\n")
			if there := Brief(p, time.UnixMilli(at(10_000)).In(time.FixedZone("NST", -12600))); there == text || !strings.Contains(there, " NST, ") {
				t.Errorf("in another zone: %s", there)
			}
			if strings.Contains(text, "hello") || strings.Contains(text, "hi bob") {
				t.Error("it has the text of a message")
			}
		})
	}
}

// TestBrief_ManyParts_IsBounded has an answer of 500 parts with long errors, each of which waits.
func TestBrief_ManyParts_IsBounded(t *testing.T) {
	p := failing()
	reply := p.Turns[0].Replies[0]
	for i := range 500 {
		reply.Parts = append(reply.Parts, store.Delivery{MessageID: reply.ID, Part: i, State: msg.OutQueued,
			NotBefore: at(1_000_000), Error: strings.Repeat("x", 5000), UpdatedAt: at(7000 + int64(i))})
	}
	text := Brief(p, time.UnixMilli(at(10_000)))
	if lines := strings.Count(text, "\n") + 1; lines > 16 || len(text) > 16*400 || !strings.Contains(text, "earlier steps left out") {
		t.Errorf("%d lines, %d bytes", lines, len(text))
	}
}

func TestSteps_OwnersAndLinks(t *testing.T) {
	p := failing()
	p.Origins = map[int64]*Origin{812: {Text: "reminder 3", Reminder: 3}}
	owners := map[string]int{}
	var decided, ended, part *Step
	steps := Steps(p)
	for i := range steps {
		s := &steps[i]
		owners[s.Owner]++
		switch {
		case strings.HasPrefix(s.Text, "message 812 decided"):
			decided = s
		case strings.HasPrefix(s.Text, "turn 97 ended"):
			ended = s
		case strings.HasPrefix(s.Text, "message 813 part 1"):
			part = s
		}
	}
	if owners[""] != 0 || owners["teled"] != 3 || steps[0].From == nil || steps[0].From.Reminder != 3 {
		t.Errorf("owners %v, the first step comes from %v", owners, steps[0].From)
	}
	if decided.Row != 812 || decided.Turn != 97 || decided.Reason != msg.ReasonRoute || decided.Meaning != "a route named the group" || decided.After != 31*time.Millisecond {
		t.Errorf("decided: %+v", decided)
	}
	if ended.Turn != 97 || ended.Reason != msg.ReasonAgentError || part.Row != 813 || part.Owner != "teled" {
		t.Errorf("ended: %+v, part: %+v", ended, part)
	}
	if open := StillOpen(p, time.UnixMilli(at(10_000))); len(open) != 2 || open[0].Owner != "teled" || open[0].Row != 813 {
		t.Errorf("open: %+v", open)
	}
}
