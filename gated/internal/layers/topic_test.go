package layers

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
