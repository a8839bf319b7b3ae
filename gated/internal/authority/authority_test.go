package authority

import (
	"testing"

	"arizuko/pkg/msg"
)

func TestOriginOf(t *testing.T) {
	t.Parallel()
	const chat = "telegram:-5"
	operators := map[string]bool{"telegram:9": true}
	for name, tc := range map[string]struct {
		m    msg.Message
		want Origin
	}{
		"user":                        {msg.Message{ChatJID: chat, Sender: "telegram:5"}, Origin{"telegram:5", false}},
		"operator":                    {msg.Message{ChatJID: chat, Sender: "telegram:9"}, Origin{"telegram:9", true}},
		"agent":                       {msg.Message{ChatJID: chat, Sender: "agent:main"}, Origin{"agent:main", false}},
		"agent of a user":             {msg.Message{ChatJID: chat, Sender: "agent:main", OnBehalfOf: "telegram:5"}, Origin{"telegram:5", false}},
		"agent of an operator":        {msg.Message{ChatJID: chat, Sender: "agent:main", OnBehalfOf: "telegram:9"}, Origin{"telegram:9", true}},
		"agent of the web's operator": {msg.Message{ChatJID: chat, Sender: "agent:main", OnBehalfOf: msg.WebOperator}, Origin{msg.WebOperator, true}},
		"name of the web's elsewhere": {msg.Message{ChatJID: chat, Sender: msg.WebOperator}, Origin{msg.WebOperator, false}},
	} {
		if got := OriginOf(&tc.m, operators); got != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
