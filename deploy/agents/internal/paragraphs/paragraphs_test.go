package paragraphs

import (
	"strings"
	"testing"

	"arizuko/pkg/agentproto"
)

func TestJoin_Texts_AreParagraphs(t *testing.T) {
	long := strings.Repeat("x", agentproto.MaxResult-10)
	for _, tt := range []struct {
		texts []string
		want  string
	}{
		{nil, ""},
		{[]string{" one\n"}, "one"},
		{[]string{"<internal>one</internal>"}, "<internal>one</internal>"},
		{[]string{"one", "", "<think>two", "three"}, "one\n\nthree"},
		{[]string{"<think>one</think>", "<internal>two</internal>"}, "<internal>two</internal>"},
		{[]string{"lost with it", "the oldest", long}, long},
		{[]string{"the oldest", "short", "x"}, "the oldest\n\nshort\n\nx"},
	} {
		if got := Join(tt.texts); got != tt.want {
			t.Errorf("%.60q: %.60q, want %.60q", tt.texts, got, tt.want)
		}
	}
}
