package match

import "testing"

func TestWords_Expressions(t *testing.T) {
	names := map[string]string{"telegram:-100": "“Dev”"}
	chat := func(jid string) string {
		if name := names[jid]; name != "" {
			return name
		}
		return jid
	}
	for expr, want := range map[string]string{
		"":                                    "everything",
		"verb=mention chat_jid=telegram:-100": "mentions of the bot in “Dev”",
		"chat_jid=telegram:-101 verb=reply":   "replies to the bot in telegram:-101",
		"chat_jid=telegram:*":                 "everything in chats like telegram:*",
		"platform=slack account=work verb=message": "plain messages on Slack by the account work",
		"platform=slack account=":                  "everything on Slack by the first account",
		"account=w*":                               "everything by accounts like w*",
		"platform=web":                             "everything on the web chat",
		"platform=irc":                             "everything on the platform irc",
		"platform=[st]*":                           "everything on platforms like [st]*",
		"sender=telegram:42 room=-7":               "everything from telegram:42 in the room -7",
		"sender=telegram:4*":                       "everything from senders like telegram:4*",
		"sender=":                                  "everything without a sender",
		"sender_name=Ann?Lee room=a*":              "everything from users who are shown as names like Ann?Lee in rooms like a*",
		"sender_name=Ann":                          "everything from users who are shown as Ann",
		"sender_name=":                             "everything without a sender's name",
		"verb=re*":                                 "what has a verb like re*",
		"verb=typing":                              "what has the verb typing",
		"verb=reaction":                            "reactions",
		"verb=join":                                "joins",
		"verb=leave":                               "leaves",
		"verb=":                                    "nothing (no message has an empty verb)",
		"room=-100":                                "everything in “Dev”",
		"platform=telegram room=-100 account=":     "everything in “Dev”",
		"platform=slack room=-100 verb=mention":    "mentions of the bot in the room -100 on Slack",
		"room=-100 account=w*":                     "everything in the room -100 by accounts like w*",
		`chat_jid=telegram:\-100`:                  "everything in “Dev”",
	} {
		e, err := ParseMatch(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got := e.Words(chat); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
	if e, _ := ParseMatch("chat_jid=telegram:-100"); e.Words(nil) != "everything in telegram:-100" {
		t.Errorf("without names: %q", e.Words(nil))
	}
}
