package msg

import "testing"

func TestMessage_Speaker(t *testing.T) {
	tests := []struct {
		m    Message
		want string
		bot  bool
	}{
		{Message{Direction: In, Sender: "telegram:7", SenderName: "Alice"}, "Alice", false},
		{Message{Direction: In, Sender: "telegram:8", SenderName: "builds", IsBot: true}, "builds", true},
		{Message{Direction: In, Sender: "agent:acme", SenderName: "Alice"}, "Alice (agent acme)", true},
		{Message{Direction: In, Sender: "agent:acme/eng", SenderName: "acme/eng", IsBot: true}, "acme/eng (agent)", true},
		{Message{Direction: In, Sender: "agent:acme"}, "acme (agent)", true},
		{Message{Direction: In, Sender: "agent:", SenderName: "Alice"}, "Alice (agent unknown)", true},
		{Message{Direction: Out, Sender: "agent:acme", SenderName: "ari", IsBot: true}, "ari", true},
	}
	for _, tt := range tests {
		if got := tt.m.Speaker(); got != tt.want || tt.m.FromBot() != tt.bot {
			t.Errorf("%+v: %q, from a bot %t", tt.m, got, tt.m.FromBot())
		}
	}
}

func TestMessage_Text(t *testing.T) {
	poll := Poll{Question: "Lunch?", Options: []string{"pizza & <more>", "soup"}}
	closed := poll
	closed.Result = &PollResult{Counts: []int{2, 0}, Voters: 2}
	files := make([]Attachment, 7)
	files[0].Name, files[1].MIME = "cat.jpg", "image/png"
	tests := []struct {
		m    Message
		want string
	}{
		{Message{Kind: KindMessage, Content: "hi"}, "hi"},
		{Message{Kind: KindPoll, Content: poll.JSON()}, "[poll: Lunch? pizza & <more> / soup]"},
		{Message{Kind: KindPoll, Content: closed.JSON()}, "[closed poll: Lunch? pizza & <more>: 2 / soup: 0]"},
		{Message{Kind: KindPoll, Content: "{"}, "{"},
		{Message{Kind: KindMessage, Content: poll.JSON()}, poll.JSON()},
		{Message{Kind: KindFile, Content: "look", Attachments: files[:2]}, "look [file: cat.jpg] [file: image/png]"},
		{Message{Attachments: files}, "[file: cat.jpg] [file: image/png] [file: unnamed] [file: unnamed] [file: unnamed] [2 more files]"},
		{Message{}, ""},
	}
	for _, tt := range tests {
		if got := tt.m.Text(); got != tt.want {
			t.Errorf("%q of %+v, want %q", got, tt.m, tt.want)
		}
	}
}
