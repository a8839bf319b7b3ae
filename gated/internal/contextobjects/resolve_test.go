package contextobjects

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

func TestResolve_References(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	add := func(event Event, topic string, kind Kind, source int64, label, url string) {
		o := inTopic(topic, object(kind, source))
		o.Label, o.URL = label, url
		f.activate(event, o)
		f.pass(time.Second)
	}
	add(ArticleSummarized, "#a", msg.ContextArticle, 1, "Tides of the North Sea", "https://example.org/tides")
	add(URLDiscussed, "#a", msg.ContextLink, 2, "Docs", "https://example.org/tides/more")
	add(MediaInspected, "#a", msg.ContextImage, 3, "Карта моря", "")
	add(PollCreated, "#a", msg.ContextPoll, 4, "Lunch?", "")
	add(PollCreated, "#a", msg.ContextPoll, 12, "Dinner at the North Sea", "")
	add(ArticleSummarized, "#b", msg.ContextArticle, 6, "Other topic", "")
	all := []string{"poll:12", "poll:4", "media.image:3", "link:2", "article:1"}
	for _, c := range []struct {
		name  string
		kinds []Kind
		chain []int64
		ref   Reference
		want  Outcome
		ids   []string
	}{
		{"nothing said", nil, nil, Reference{}, Ambiguous, all},
		{"one of a kind", []Kind{"article"}, nil, Reference{}, Resolved, []string{"article:1"}},
		{"two of a kind", []Kind{"poll"}, nil, Reference{}, Ambiguous, []string{"poll:12", "poll:4"}},
		{"none of a kind", []Kind{"reminder"}, nil, Reference{}, NotFound, []string{}},
		{"words of a label", nil, nil, Reference{LabelWords: []string{"north sea", "TIDES"}}, Resolved, []string{"article:1"}},
		{"a word of two labels", nil, nil, Reference{LabelWords: []string{"sea"}}, Ambiguous, []string{"poll:12", "article:1"}},
		{"a word of another script", nil, nil, Reference{LabelWords: []string{"КАРТА"}}, Resolved, []string{"media.image:3"}},
		{"part of a word", nil, nil, Reference{LabelWords: []string{"nor"}}, NotFound, []string{}},
		{"a word of no label", nil, nil, Reference{LabelWords: []string{"breakfast"}}, NotFound, []string{}},
		{"first", nil, nil, Reference{Ordinal: 1}, Resolved, []string{"article:1"}},
		{"second poll", []Kind{"poll"}, nil, Reference{Ordinal: 2}, Resolved, []string{"poll:12"}},
		{"last", nil, nil, Reference{Ordinal: -1}, Resolved, []string{"poll:12"}},
		{"sixth of five", nil, nil, Reference{Ordinal: 6}, NotFound, []string{}},
		{"sixth from the end", nil, nil, Reference{Ordinal: -6}, NotFound, []string{}},
		{"a text with a URL", nil, nil, Reference{RawText: "translate https://EXAMPLE.org/tides, please"}, Resolved, []string{"article:1"}},
		{"a text with a longer URL", nil, nil, Reference{RawText: "translate https://example.org/tides/more"}, Resolved, []string{"link:2"}},
		{"a text with an id", nil, nil, Reference{RawText: "close poll:12"}, Resolved, []string{"poll:12"}},
		{"a text with a label", nil, nil, Reference{RawText: "close lunch? now"}, Resolved, []string{"poll:4"}},
		{"a text with none", []Kind{"poll"}, nil, Reference{RawText: "close it"}, Ambiguous, []string{"poll:12", "poll:4"}},
		{"the message that is answered", nil, []int64{3}, Reference{ReplyTo: 3}, Resolved, []string{"media.image:3"}},
		{"its chain", nil, []int64{90, 4}, Reference{ReplyTo: 90}, Resolved, []string{"poll:4"}},
		{"the message before its chain", nil, []int64{3, 4}, Reference{ReplyTo: 3}, Resolved, []string{"media.image:3"}},
		{"two in its chain", nil, []int64{90, 4, 3}, Reference{ReplyTo: 90}, Ambiguous, []string{"poll:4", "media.image:3"}},
		{"a chain of another topic", nil, []int64{6}, Reference{ReplyTo: 6}, Resolved, []string{"article:6"}},
		{"a kind beside its chain", []Kind{"article"}, []int64{4}, Reference{ReplyTo: 4}, Resolved, []string{"article:1"}},
		{"an ordinal beside its chain", []Kind{"poll"}, []int64{12}, Reference{ReplyTo: 12, Ordinal: 1}, Resolved, []string{"poll:4"}},
	} {
		q := f.query("#a")
		q.Kinds, q.ReplyChain = c.kinds, c.chain
		got := storetest.Must(f.x.Resolve(t.Context(), f.st.Reader, q, c.ref))(t)
		if diff := cmp.Diff(c.ids, ids(got.Matches)); got.Outcome != c.want || diff != "" {
			t.Errorf("%s: %s, want %s (-want +got):\n%s", c.name, got.Outcome, c.want, diff)
		}
	}
	q := f.query("#a")
	q.Max = 2
	if got := storetest.Must(f.x.Resolve(t.Context(), f.st.Reader, q, Reference{}))(t); len(got.Matches) != 2 || !got.Truncated || got.Scope != ScopeTopic {
		t.Errorf("at most two candidates: %+v", got)
	}
}

func TestWeights_Text(t *testing.T) {
	t.Parallel()
	const defaults = "reply_chain=100,topic=60,recent=30,explicit=20,kind=20,open=15,owned=10,fallback=-30,near_expiry=-15"
	if got := DefaultWeights().String(); got != defaults {
		t.Errorf("the default is %s", got)
	}
	for _, c := range []struct{ text, want, problem string }{
		{"", defaults, ""},
		{defaults, defaults, ""},
		{" topic=1, fallback=0,", "reply_chain=100,topic=1,recent=30,explicit=20,kind=20,open=15,owned=10,fallback=0,near_expiry=-15", ""},
		{"tropic=1", "", `unknown weight "tropic": the weights are ` + defaults},
		{"topic", "", `weight "topic": "" is not a whole number from -1000000 to 1000000`},
		{"topic=1.5", "", `weight "topic": "1.5" is not a whole number from -1000000 to 1000000`},
		{"topic=1000001", "", `weight "topic": "1000001" is not a whole number from -1000000 to 1000000`},
		{"topic=-1", "", `weight "topic": -1 is below 0`},
		{"near_expiry=1", "", `weight "near_expiry": 1 is above 0`},
		{"reply_chain=0,topic=0,recent=0,explicit=0,kind=0,open=0,owned=0", "", "at least one weight must be above 0"},
	} {
		var w Weights
		err := w.UnmarshalText([]byte(c.text))
		switch {
		case c.problem != "" && (err == nil || err.Error() != c.problem):
			t.Errorf("%q: %v, want %s", c.text, err, c.problem)
		case c.problem == "" && (err != nil || w.String() != c.want):
			t.Errorf("%q is %s, %v", c.text, w, err)
		}
	}
}
