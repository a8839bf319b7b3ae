package msg

import "testing"

func TestCorrectionTopic(t *testing.T) {
	for topic, want := range map[string]string{"": "#fix", "#deploy": "#deploy#fix", "33": "33#fix"} {
		if got := CorrectionTopic(topic, 1); got != want {
			t.Errorf("of %q: %q, want %q", topic, got, want)
		}
	}
	if got := CorrectionTopic("", 2); got != "#fix2" || !ValidTopic(got) {
		t.Errorf("the second: %q", got)
	}
}

func TestForkThread_WherePlatformBeginsThreadsAtMessages(t *testing.T) {
	for _, tt := range []struct {
		jid, want string
		kind      ChatKind
	}{
		{"slack:C1", "7", ChatGroup}, {"slack:D1", "7", ChatDM}, {"discord:1", "7", ChatGroup}, {"discord:dm-1", "", ChatDM},
		{"telegram:-1", "", ChatGroup}, {"web:acme", "", ChatDM}, {"matrix:x", "", ChatGroup},
	} {
		if got := ForkThread(tt.jid, tt.kind, "7"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.jid, got, tt.want)
		}
	}
}
