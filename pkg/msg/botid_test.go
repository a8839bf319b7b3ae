package msg

import "testing"

func TestIDsOfBot_PrivateChatsAndBasicGroups(t *testing.T) {
	t.Parallel()
	for jid, want := range map[string]bool{
		"telegram:42": true, "telegram+work:42": true, "telegram:-4000000001": true, "telegram:-1004000000001": false, "telegram:-1004000000001.42": false, "telegram:-2004000000001": false,
		"telegram:": false, "telegram:seven": false, "discord:42": false, "discord:dm-42": false, "slack:D42": false, "web:main": false,
	} {
		if got := IDsOfBot(jid); got != want {
			t.Errorf("%s: %t", jid, got)
		}
	}
}

func TestCutBotMark_OnlyOfAMark(t *testing.T) {
	t.Parallel()
	if first := BotMark("900001", "900001"); first != "" {
		t.Errorf("the first bot has the mark %q", first)
	}
	for id, want := range map[string][2]string{
		"7": {"", "7"}, "7:e:99-ab": {"", "7:e:99-ab"}, "": {"", ""}, BotMark("900001", "900002") + "7": {"b900002.", "7"},
		"b900002.7:r:5:👍:1-2": {"b900002.", "7:r:5:👍:1-2"}, "b900002": {"", "b900002"}, "b.7": {"", "b.7"}, "b-1.7": {"", "b-1.7"}, "1.2": {"", "1.2"},
		"old:b900002.7": {"", "old:b900002.7"}, "bot.7": {"", "bot.7"}, "1764000000.000200": {"", "1764000000.000200"},
	} {
		if mark, rest := CutBotMark(id); mark != want[0] || rest != want[1] {
			t.Errorf("%q: %q and %q", id, mark, rest)
		}
	}
}
