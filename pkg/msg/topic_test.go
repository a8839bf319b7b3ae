package msg

import "testing"

func TestEffectiveTopic(t *testing.T) {
	tests := []struct {
		name                       string
		sticky, row, thread, bound string
		want                       string
	}{
		{"nothing", "", "", "", "", ""},
		{"inline", "", "#a", "", "", "#a"},
		{"sticky", "#s", "", "", "", "#s"},
		{"sticky beats inline", "#s", "#a", "", "", "#s"},
		{"sticky beats a thread", "#s", "17.2", "17.2", "", "#s"},
		{"sticky beats a bound thread", "#s", "17.2", "17.2", "#b", "#s"},
		{"thread", "", "17.2", "17.2", "", "17.2"},
		{"bound thread", "", "17.2", "17.2", "#b", "#b"},
		{"bound thread, row without topic", "", "", "17.2", "#b", "#b"},
		{"inline in a bound thread", "", "#a", "17.2", "#b", "#a"},
		{"fork in a bound thread", "", "17.2#fix", "17.2", "#b", "17.2#fix"},
		{"topic of another thread", "", "16.1", "17.2", "#b", "16.1"},
		{"a thread's row without topic", "", "", "17.2", "", ""},
	}
	for _, tt := range tests {
		if got := EffectiveTopic(tt.sticky, tt.row, tt.thread, tt.bound); got != tt.want {
			t.Errorf("%s: EffectiveTopic = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestPlace(t *testing.T) {
	tests := []struct{ thread, row, want string }{
		{"", "", ""},
		{"", "#a", "#a"},
		{"17.2", "", "17.2"},
		{"17.2", "#a", "17.2"},
		{"17.2", "17.2", "17.2"},
	}
	for _, tt := range tests {
		if got := Place(tt.thread, tt.row); got != tt.want {
			t.Errorf("Place(%q, %q) = %q, want %q", tt.thread, tt.row, got, tt.want)
		}
	}
}

func TestValidTopic(t *testing.T) {
	for topic, want := range map[string]bool{
		"": true, "#deploy": true, "#Deploy_2-b": true, "#1": true, "#a#fix": true, "#d": true, "#d1x": true, "#data": true,
		"deploy": false, "#": false, "#-a": false, "#a b": false, "#a##b": false, "#a#": false, "#ü": false, "#a/b": false,
		"#d1": false, "#a#d12": false, "17.2": false,
	} {
		if got := ValidTopic(topic); got != want {
			t.Errorf("ValidTopic(%q) = %v, want %v", topic, got, want)
		}
	}
	if topic := DelegatedTopic(12); topic != "#d12" || ValidTopic(topic) {
		t.Errorf("users can type a delegated turn's topic, %q", topic)
	}
}
