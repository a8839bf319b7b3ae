package scenarios

import (
	"math"
	"testing"
	"time"

	"arizuko/pkg/msg"
)

// inGroup is the whole of a Telegram group without topics.
var inGroup = asked{"main", "", "", "", "telegram-group 1500"}

func TestEngagement(t *testing.T) {
	// group is where these stories happen.
	group := room("telegram:-5")
	called := calls(0, group, "t1", "what broke?").asking(inGroup, msg.ReasonRoute)
	play(t, []story{
		{title: "each answer that arrives keeps the place for twenty minutes more", steps: []step{
			called,
			says(19, group, "tell me more").asking(inGroup, msg.ReasonEngaged),
			says(38, group, "why?").asking(inGroup, msg.ReasonEngaged),
			says(59, group, "lunch?").isHeard(),
		}},
		{title: "who follows up while the agent thinks need not call again", steps: []step{
			calls(0, group, "t1", "wait for it").asking(inGroup, msg.ReasonRoute).thinking(),
			says(30, group, "and hurry").asking(inGroup, msg.ReasonEngaged).thinking(),
			released(31, group),
			says(50, group, "thanks").asking(inGroup, msg.ReasonEngaged),
		}},
		{title: "a call and what follows it at once are one question", steps: []step{
			together(
				says(0, group, "good morning").isHeard(),
				called,
				says(0, group, "it was fine yesterday").asking(inGroup, msg.ReasonEngaged),
			),
			says(1, group, "thanks").asking(inGroup, msg.ReasonEngaged),
		}},
		{title: "the same in a Slack channel, where the follow-up is in the thread to be opened", steps: []step{
			together(
				calls(0, channel, "1.1", "what broke?").asking(opened, msg.ReasonRoute),
				says(0, thread, "it was fine yesterday").asking(opened, msg.ReasonEngaged),
				says(0, channel, "lunch?").isHeard(),
			),
		}},
		{title: "of two groups the one called last stays", steps: []step{
			called,
			calls(1, group, "t2", "@eng what do you say?").asking(asked{"main/eng", "", "", "", "telegram-group 1500"}, msg.ReasonPrefixGroup),
			says(20, group, "why?").asking(asked{"main/eng", "", "", "", "telegram-group 1500"}, msg.ReasonEngaged),
			says(41, group, "lunch?").isHeard(),
		}},
		{title: "an answer on its way holds the place; the window opens when it arrives", steps: []step{
			called.answer(isOnItsWay),
			says(30, group, "hello?").asking(inGroup, msg.ReasonEngaged).answer(isOnItsWay),
			arrive(40, group),
			says(59, group, "there you are").asking(inGroup, msg.ReasonEngaged),
			says(80, group, "lunch?").isHeard(),
		}},
		{title: "an answer that does not arrive engages nobody", steps: []step{
			called.answer(isRefused),
			says(5, group, "lunch?").isHeard(),
		}},
		{title: "an answer that does not arrive does not shorten what there is", steps: []step{
			called,
			says(10, group, "tell me more").asking(inGroup, msg.ReasonEngaged).answer(isRefused),
			says(19, group, "hello?").asking(inGroup, msg.ReasonEngaged),
			says(40, group, "lunch?").isHeard(),
		}},
		{title: "an answer that arrives at an impossible time stops nobody", steps: []step{
			called.answer(isOnItsWay),
			arriveAt(time.UnixMilli(math.MinInt64), group),
			says(1, room("discord:6"), "lunch?").isHeard(),
			calls(2, group, "t2", "again?").asking(inGroup, msg.ReasonRoute).answer(isOnItsWay),
			arriveAt(time.UnixMilli(math.MaxInt64), group),
			says(3, room("discord:6"), "pizza").isHeard(),
		}},
		{title: "silence lets go of the place", steps: []step{
			calls(0, group, "t1", "silent please").asking(inGroup, msg.ReasonRoute).ending(msg.ReasonSilent),
			says(5, group, "lunch?").isHeard(),
		}},
		{title: "silence while engaged ends nothing", steps: []step{
			called,
			says(10, group, "silent please").asking(inGroup, msg.ReasonEngaged).ending(msg.ReasonSilent),
			says(19, group, "thanks").asking(inGroup, msg.ReasonEngaged),
		}},
		{title: "failure lets go of the place, and the notice of it engages nobody", steps: []step{
			calls(0, group, "t1", "error").asking(inGroup, msg.ReasonRoute).ending(msg.ReasonAgentError),
			says(5, group, "lunch?").isHeard(),
			calls(6, group, "t2", "again").asking(inGroup, msg.ReasonRoute),
			says(7, group, "thanks").asking(inGroup, msg.ReasonEngaged),
		}},
		{title: "who hands the question to a child holds the place until that has answered", steps: []step{
			calls(0, group, "t1", "silent please").asking(inGroup, msg.ReasonRoute).ending(msg.ReasonSilent),
			delegated(group, "t1", "main/eng", "wait for it"),
			says(5, group, "and hurry").asking(inGroup, msg.ReasonEngaged),
			released(10, group),
			says(29, group, "thanks").asking(inGroup, msg.ReasonEngaged),
		}},
		{title: "what the suite says on its own neither opens nor slides a window", steps: []step{
			posted(0, group, "broadcast", ""),
			says(1, group, "good morning").isHeard(),
			calls(2, group, "t1", "what broke?").asking(inGroup, msg.ReasonRoute),
			posted(15, group, "broadcast", ""),
			posted(16, group, "reminder", ""),
			posted(17, group, "reminder", "t1"),
			posted(18, group, msg.SourceNotice, "t1"),
			says(20, group, "/ping").becomes(msg.ReasonCommand),
			says(23, group, "lunch?").isHeard(),
		}},
		{title: "a broadcast stands at the top of a channel, beside the threads", steps: []step{
			calls(0, channel, "1.1", "what broke?").asking(opened, msg.ReasonRoute),
			posted(10, channel, "broadcast", ""),
			says(11, channel, "good morning").isHeard(),
			says(21, thread, "lunch?").isHeard(),
		}},
		{title: "@name ends the window; so the group is gone when the pin is", steps: []step{
			called,
			says(1, group, "@eng").becomes(msg.ReasonStickyGroup),
			says(2, group, "who are you?").asking(asked{"main/eng", "", "", "", "telegram-group 1500"}, msg.ReasonToSticky),
			says(3, group, "@").becomes(msg.ReasonStickyReset),
			says(4, group, "lunch?").isHeard(),
		}},
		{title: "@ alone ends the windows of all the chat's threads", steps: []step{
			calls(0, channel, "1.1", "what broke?").asking(opened, msg.ReasonRoute),
			says(1, channel, "@").becomes(msg.ReasonStickyReset),
			says(2, thread, "lunch?").isHeard(),
			calls(3, thread, "1.3", "are you there?").asking(opened, msg.ReasonRoute),
			says(4, thread, "good").asking(opened, msg.ReasonEngaged),
		}},
		{title: "@ while the agent thinks ends the claim, and the answer opens nothing", steps: []step{
			calls(0, group, "t1", "wait for it").asking(inGroup, msg.ReasonRoute).thinking(),
			says(1, group, "@").becomes(msg.ReasonStickyReset),
			says(2, group, "lunch?").isHeard(),
			released(3, group),
			says(4, group, "pizza").isHeard(),
		}},
		{title: "the group can be told to stay, and to go", steps: []step{
			says(0, group, "good morning").isHeard(),
			engaged(group, "main", 600),
			says(5, group, "what broke?").asking(inGroup, msg.ReasonEngaged),
			says(24, group, "thanks").asking(inGroup, msg.ReasonEngaged),
			engaged(group, "", 0),
			says(25, group, "lunch?").isHeard(),
		}},
		{title: "told to go while its agent thinks, it says its last word and is gone", steps: []step{
			calls(0, group, "t1", "wait for it").asking(inGroup, msg.ReasonRoute).thinking(),
			engaged(group, "", 0),
			says(1, group, "lunch?").isHeard(),
			released(2, group),
			says(3, group, "pizza").isHeard(),
			calls(4, group, "t2", "come back").asking(inGroup, msg.ReasonRoute),
			says(5, group, "thanks").asking(inGroup, msg.ReasonEngaged),
		}},
		{title: "a turn that is taken up again after gated died still holds the place", steps: []step{
			calls(0, group, "t1", "wait for it").asking(inGroup, msg.ReasonRoute).thinking(),
			event(gatedDies),
			says(1, group, "and hurry").asking(inGroup, msg.ReasonEngaged).thinking(),
			released(2, group),
			says(21, group, "thanks").asking(inGroup, msg.ReasonEngaged),
		}},
	})
}

func TestEngagementOverridesRoutes(t *testing.T) {
	group := room("telegram:-5")
	play(t, []story{
		{title: "routes that only listen", routes: []route{{"verb=mention", "main"}, {"", "other#observe"}}, steps: []step{
			says(0, group, "good morning").isHeard(),
			calls(1, group, "t1", "what broke?").asking(inGroup, msg.ReasonRoute),
			says(2, group, "tell me more").asking(inGroup, msg.ReasonEngaged),
			says(23, group, "lunch?").isHeard(),
		}},
		{title: "routes that lead elsewhere", routes: []route{{"verb=mention", "main"}, {"", "other"}}, steps: []step{
			says(0, group, "good morning").asking(asked{"other", "", "", "", "telegram-group 1500"}, msg.ReasonRoute),
			calls(1, group, "t1", "what broke?").asking(inGroup, msg.ReasonRoute),
			says(2, group, "tell me more").asking(inGroup, msg.ReasonEngaged),
			says(23, group, "lunch?").asking(asked{"other", "", "", "", "telegram-group 1500"}, msg.ReasonRoute),
		}},
		{title: "no route at all", routes: []route{{"verb=mention", "main"}}, steps: []step{
			says(0, group, "good morning").becomes(msg.ReasonNoRoute),
			calls(1, group, "t1", "what broke?").asking(inGroup, msg.ReasonRoute),
			says(2, group, "tell me more").asking(inGroup, msg.ReasonEngaged),
			says(23, group, "lunch?").becomes(msg.ReasonNoRoute),
		}},
		{title: "but not a route that ignores", routes: []route{{"sender=telegram:13", "builtin:drop"}, {"verb=mention", "main"}}, steps: []step{
			calls(0, group, "t1", "what broke?").asking(inGroup, msg.ReasonRoute),
			says(1, group, "buy my coins").by("telegram:13").becomes(msg.ReasonBuiltinDrop),
			calls(2, group, "t2", "buy my coins").by("telegram:13").becomes(msg.ReasonBuiltinDrop),
			says(3, group, "tell me more").asking(inGroup, msg.ReasonEngaged),
		}},
	})
}

func TestEngagementThroughAnOutageOfRoutd(t *testing.T) {
	group := room("telegram:-5")
	var stories []story
	for _, outage := range outages {
		begins, ends := gone(outage.begin), returned(outage.stop)
		stories = append(stories, []story{
			{title: outage.name + ": what came in time is answered, however late that is found out", steps: []step{
				calls(0, group, "t1", "what broke?").asking(inGroup, msg.ReasonRoute),
				begins,
				says(19, group, "tell me more").asking(inGroup, msg.ReasonEngaged).later(),
				says(41, group, "lunch?").isHeard().later(),
				event(noticed),
				event(hoursPass),
				ends,
			}},
			{title: outage.name + ": an answer that arrives meanwhile opens the window", steps: []step{
				calls(0, group, "t1", "wait for it").asking(inGroup, msg.ReasonRoute).thinking(),
				begins,
				released(5, group),
				says(24, group, "thanks").asking(inGroup, msg.ReasonEngaged).later(),
				says(46, group, "lunch?").isHeard().later(),
				event(noticed),
				event(hoursPass),
				ends,
			}},
			{title: outage.name + ": an answer that arrives meanwhile slides the window", steps: []step{
				calls(0, group, "t1", "what broke?").asking(inGroup, msg.ReasonRoute),
				says(10, group, "wait for it").asking(inGroup, msg.ReasonEngaged).thinking(),
				begins,
				released(15, group),
				says(34, group, "thanks").asking(inGroup, msg.ReasonEngaged).later(),
				says(56, group, "lunch?").isHeard().later(),
				event(noticed),
				event(hoursPass),
				ends,
			}},
			{title: outage.name + ": a call and its follow-up wait together", steps: []step{
				begins,
				says(0, group, "good morning").isHeard().later(),
				calls(1, group, "t1", "what broke?").asking(inGroup, msg.ReasonRoute).later(),
				says(2, group, "it was fine yesterday").asking(inGroup, msg.ReasonEngaged).later(),
				event(noticed),
				ends,
				says(20, group, "thanks").asking(inGroup, msg.ReasonEngaged),
			}},
		}...)
	}
	play(t, stories)
}
