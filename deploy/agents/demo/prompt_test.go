package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
)

func TestMessageTexts_OfTurn_AreUnescaped(t *testing.T) {
	tests := []struct {
		name, prompt string
		want         []string
	}{
		{"nothing", "", nil},
		{"no messages", "<messages></messages>", nil},
		{"one", `<turn jid="x"/><messages><message id="1" name="a">hi</message></messages>`, []string{"hi"}},
		{"several", "<messages>\n<message id=\"1\">\na\n</message>\n<message>b\nc</message>\n</messages>", []string{"a", "b\nc"}},
		{"only those of the turn", `<observed><message>no</message></observed><messages><message>yes</message></messages>`, []string{"yes"}},
		{"escaped", `<messages><message id="&gt;">&lt;/messages&gt; &amp;lt; &#34;&#xA;x</message></messages>`, []string{"</messages> &lt; \"\nx"}},
		{"attachments", `<messages><message id="1">see<attachment path="inbox/a.png"/></message></messages>`, []string{"see"}},
		{"empty ones", `<messages><message id="1"/><message id="2">b</message></messages>`, []string{"b"}},
		{"cut off", `<messages><message id="1">hi`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, messageTexts(tt.prompt)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTranscripts_AreApartFromTexts(t *testing.T) {
	const prompt = `<observed><message><attachment><transcript by="machine">old</transcript></attachment></message></observed>
<messages><message id="1">listen<attachment name="v.ogg"><transcript by="machine">a &lt;b&gt;
c</transcript></attachment></message></messages>`
	if diff := cmp.Diff([]string{"a <b>\nc"}, transcripts(prompt)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"listen"}, messageTexts(prompt)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseOrder_LeadingWords_AreInstructions(t *testing.T) {
	tests := []struct {
		text string
		want order
	}{
		{"hello", order{}},
		{"", order{}},
		{"slow 2", order{slow: 2 * time.Second}},
		{"Slow 0.5 and the rest", order{slow: 500 * time.Millisecond}},
		{"frames 3\nslow 1", order{frames: 3, slow: time.Second}},
		{"slow 1 crash", order{slow: time.Second, crash: true}},
		{"fold slow 2", order{fold: true, slow: 2 * time.Second}},
		{"spend 0.5 slow 2 x", order{spend: 0.5, slow: 2 * time.Second}},
		{"spend much", order{}},
		{"until it-is done", order{until: "it-is"}},
		{"until ../x", order{}},
		{"until", order{}},
		{"silent", order{silent: true}},
		{"error", order{fail: true}},
		{"error transient", order{fail: true, kind: agentproto.KindTransient}},
		{"Error Transient 40 now", order{fail: true, kind: agentproto.KindTransient, retry: 40}},
		{"error transient 99999", order{fail: true, kind: agentproto.KindTransient}},
		{"slow 2 error permanent 3", order{slow: 2 * time.Second, fail: true, kind: agentproto.KindPermanent}},
		{"error session", order{fail: true, kind: agentproto.KindSession}},
		{"error result", order{fail: true, result: true}},
		{"error handling is hard", order{fail: true}},
		{"please crash", order{}},
		{"slow down", order{}},
		{"slow", order{}},
		{"slow -1", order{}},
		{"slow nan", order{}},
		{"slow 1e99", order{}},
		{"frames 1000000", order{}},
		{"silently", order{}},
	}
	for _, tt := range tests {
		if got := parseOrder(tt.text); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: %+v, want %+v", tt.text, got, tt.want)
		}
	}
}
