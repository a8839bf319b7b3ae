package scenarios

import (
	"math"
	"testing"
	"time"

	"arizuko/pkg/msg"
)

// inGroup is a turn in a Telegram group without topics.
var inGroup = wantTurn{"main", "", "", "", "telegram-group 1500"}

func TestEngagement_Window_OpensSlidesAndEnds(t *testing.T) {
	// group is the chat of these scenarios.
	group := inChat("telegram:-5")
	mention := mentions(0, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute)
	runScenarios(t, []scenario{
		{title: "each delivered answer extends the window to twenty minutes", steps: []step{
			mention,
			says(19, group, "tell me more").starts(inGroup, msg.ReasonEngaged),
			says(38, group, "why?").starts(inGroup, msg.ReasonEngaged),
			says(59, group, "lunch?").observed(),
		}},
		{title: "a follow-up while the agent works needs no mention", steps: []step{
			mentions(0, group, "t1", "wait until released").starts(inGroup, msg.ReasonRoute).runsOn(),
			says(30, group, "and hurry").starts(inGroup, msg.ReasonEngaged).runsOn(),
			releaseAgents(31, group),
			says(50, group, "thanks").starts(inGroup, msg.ReasonEngaged),
		}},
		{title: "a conversation goes on though its answers come after the end of the window", steps: []step{
			mention,
			says(19, group, "wait until released").starts(inGroup, msg.ReasonEngaged).runsOn(),
			says(25, group, "are you still there?").starts(inGroup, msg.ReasonEngaged).runsOn(),
			releaseAgents(30, group),
			says(49, group, "thanks").starts(inGroup, msg.ReasonEngaged),
			says(70, group, "lunch?").observed(),
		}},
		{title: "a mention and the rows of its batch after it are one question", steps: []step{
			inOneBatch(
				says(0, group, "good morning").observed(),
				mention,
				says(0, group, "it was fine yesterday").starts(inGroup, msg.ReasonEngaged),
			),
			says(1, group, "thanks").starts(inGroup, msg.ReasonEngaged),
		}},
		{title: "the same in a Slack channel, where the follow-up is in the new thread", steps: []step{
			inOneBatch(
				mentions(0, channel, "1.1", "what broke?").starts(opened, msg.ReasonRoute),
				says(0, thread, "it was fine yesterday").starts(opened, msg.ReasonEngaged),
				says(0, channel, "lunch?").observed(),
			),
		}},
		{title: "of two groups the last mentioned one is engaged", steps: []step{
			mention,
			mentions(1, group, "t2", "@eng what do you say?").starts(wantTurn{"main/eng", "", "", "", "telegram-group 1500"}, msg.ReasonPrefixGroup),
			says(20, group, "why?").starts(wantTurn{"main/eng", "", "", "", "telegram-group 1500"}, msg.ReasonEngaged),
			says(41, group, "lunch?").observed(),
		}},
		{title: "a queued answer engages; its delivery opens the window", steps: []step{
			mention.answerIs(queued),
			says(30, group, "hello?").starts(inGroup, msg.ReasonEngaged).answerIs(queued),
			deliver(40, group),
			says(59, group, "there you are").starts(inGroup, msg.ReasonEngaged),
			says(80, group, "lunch?").observed(),
		}},
		{title: "an undelivered answer does not engage", steps: []step{
			mention.answerIs(rejected),
			says(5, group, "lunch?").observed(),
		}},
		{title: "an undelivered answer does not shorten the window", steps: []step{
			mention,
			says(10, group, "tell me more").starts(inGroup, msg.ReasonEngaged).answerIs(rejected),
			says(19, group, "hello?").starts(inGroup, msg.ReasonEngaged),
			says(40, group, "lunch?").observed(),
		}},
		{title: "an answer delivered at an invalid time affects no other chat", steps: []step{
			mention.answerIs(queued),
			deliverAt(time.UnixMilli(math.MinInt64), group),
			says(1, inChat("discord:6"), "lunch?").observed(),
			mentions(2, group, "t2", "again?").starts(inGroup, msg.ReasonRoute).answerIs(queued),
			deliverAt(time.UnixMilli(math.MaxInt64), group),
			says(3, inChat("discord:6"), "pizza").observed(),
		}},
		{title: "a silent turn ends its claim", steps: []step{
			mentions(0, group, "t1", "silent please").starts(inGroup, msg.ReasonRoute).endsAs(msg.ReasonSilent),
			says(5, group, "lunch?").observed(),
		}},
		{title: "a silent turn does not end the window", steps: []step{
			mention,
			says(10, group, "silent please").starts(inGroup, msg.ReasonEngaged).endsAs(msg.ReasonSilent),
			says(19, group, "thanks").starts(inGroup, msg.ReasonEngaged),
		}},
		{title: "a failed turn ends its claim, and its notice does not engage", steps: []step{
			mentions(0, group, "t1", "error").starts(inGroup, msg.ReasonRoute).endsAs(msg.ReasonAgentError),
			says(5, group, "lunch?").observed(),
			mentions(6, group, "t2", "again").starts(inGroup, msg.ReasonRoute),
			says(7, group, "thanks").starts(inGroup, msg.ReasonEngaged),
		}},
		{title: "a delegated question engages until the child has answered", steps: []step{
			mentions(0, group, "t1", "silent please").starts(inGroup, msg.ReasonRoute).endsAs(msg.ReasonSilent),
			delegate(group, "t1", "main/eng", "wait until released"),
			says(5, group, "and hurry").starts(inGroup, msg.ReasonEngaged),
			releaseAgents(10, group),
			says(29, group, "thanks").starts(inGroup, msg.ReasonEngaged),
		}},
		{title: "unprompted rows neither open nor extend a window", steps: []step{
			posts(0, group, "broadcast", ""),
			says(1, group, "good morning").observed(),
			mentions(2, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute),
			posts(15, group, "broadcast", ""),
			posts(16, group, "reminder", ""),
			posts(17, group, "reminder", "t1"),
			posts(18, group, msg.SourceNotice, "t1"),
			says(20, group, "/ping").decided(msg.ReasonCommand),
			says(23, group, "lunch?").observed(),
		}},
		{title: "a broadcast in a channel does not affect its threads", steps: []step{
			mentions(0, channel, "1.1", "what broke?").starts(opened, msg.ReasonRoute),
			posts(10, channel, "broadcast", ""),
			says(11, channel, "good morning").observed(),
			says(21, thread, "lunch?").observed(),
		}},
		{title: "@name ends the window, and @ does not restore it", steps: []step{
			mention,
			says(1, group, "@eng").decided(msg.ReasonStickyGroup),
			says(2, group, "who are you?").starts(wantTurn{"main/eng", "", "", "", "telegram-group 1500"}, msg.ReasonToSticky),
			says(3, group, "@").decided(msg.ReasonStickyReset),
			says(4, group, "lunch?").observed(),
		}},
		{title: "@ ends the windows of all threads of the chat", steps: []step{
			mentions(0, channel, "1.1", "what broke?").starts(opened, msg.ReasonRoute),
			says(1, channel, "@").decided(msg.ReasonStickyReset),
			says(2, thread, "lunch?").observed(),
			mentions(3, thread, "1.3", "are you there?").starts(opened, msg.ReasonRoute),
			says(4, thread, "good").starts(opened, msg.ReasonEngaged),
		}},
		{title: "@ while the agent works ends the claim, and the answer opens no window", steps: []step{
			mentions(0, group, "t1", "wait until released").starts(inGroup, msg.ReasonRoute).runsOn(),
			says(1, group, "@").decided(msg.ReasonStickyReset),
			says(2, group, "lunch?").observed(),
			releaseAgents(3, group),
			says(4, group, "pizza").observed(),
		}},
		{title: "the API opens and ends a window", steps: []step{
			says(0, group, "good morning").observed(),
			engage(group, "main", 600),
			says(5, group, "what broke?").starts(inGroup, msg.ReasonEngaged),
			says(24, group, "thanks").starts(inGroup, msg.ReasonEngaged),
			engage(group, "", 0),
			says(25, group, "lunch?").observed(),
		}},
		{title: "ended by the API while the agent works, the answer opens no window", steps: []step{
			mentions(0, group, "t1", "wait until released").starts(inGroup, msg.ReasonRoute).runsOn(),
			engage(group, "", 0),
			says(1, group, "lunch?").observed(),
			releaseAgents(2, group),
			says(3, group, "pizza").observed(),
			mentions(4, group, "t2", "come back").starts(inGroup, msg.ReasonRoute),
			says(5, group, "thanks").starts(inGroup, msg.ReasonEngaged),
		}},
		{title: "a turn that is resumed after a kill of gated still engages", steps: []step{
			mentions(0, group, "t1", "wait until released").starts(inGroup, msg.ReasonRoute).runsOn(),
			action(killGated),
			says(1, group, "and hurry").starts(inGroup, msg.ReasonEngaged).runsOn(),
			releaseAgents(2, group),
			says(21, group, "thanks").starts(inGroup, msg.ReasonEngaged),
		}},
	})
}

func TestEngagement_Open_OverridesRoutes(t *testing.T) {
	group := inChat("telegram:-5")
	runScenarios(t, []scenario{
		{title: "routes that only observe", routes: []route{{"verb=mention", "main"}, {"", "other#observe"}}, steps: []step{
			says(0, group, "good morning").observed(),
			mentions(1, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute),
			says(2, group, "tell me more").starts(inGroup, msg.ReasonEngaged),
			says(23, group, "lunch?").observed(),
		}},
		{title: "routes to another group", routes: []route{{"verb=mention", "main"}, {"", "other"}}, steps: []step{
			says(0, group, "good morning").starts(wantTurn{"other", "", "", "", "telegram-group 1500"}, msg.ReasonRoute),
			mentions(1, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute),
			says(2, group, "tell me more").starts(inGroup, msg.ReasonEngaged),
			says(23, group, "lunch?").starts(wantTurn{"other", "", "", "", "telegram-group 1500"}, msg.ReasonRoute),
		}},
		{title: "no route at all", routes: []route{{"verb=mention", "main"}}, steps: []step{
			says(0, group, "good morning").decided(msg.ReasonNoRoute),
			mentions(1, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute),
			says(2, group, "tell me more").starts(inGroup, msg.ReasonEngaged),
			says(23, group, "lunch?").decided(msg.ReasonNoRoute),
		}},
		{title: "except a route that drops", routes: []route{{"sender=telegram:13", "builtin:drop"}, {"verb=mention", "main"}}, steps: []step{
			mentions(0, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute),
			says(1, group, "buy my coins").from("telegram:13").decided(msg.ReasonBuiltinDrop),
			mentions(2, group, "t2", "buy my coins").from("telegram:13").decided(msg.ReasonBuiltinDrop),
			says(3, group, "tell me more").starts(inGroup, msg.ReasonEngaged),
		}},
	})
}

func TestEngagement_RoutdOutage_DecidedByTimeOfMessage(t *testing.T) {
	group := inChat("telegram:-5")
	var all []scenario
	for _, outage := range outages {
		begin, end := beginOutage(outage.begin), endOutage(outage.end)
		all = append(all, []scenario{
			{title: outage.name + ": a message within the window is answered, however late it is decided", steps: []step{
				mentions(0, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute),
				begin,
				says(19, group, "tell me more").starts(inGroup, msg.ReasonEngaged).afterOutage(),
				says(41, group, "and why?").starts(inGroup, msg.ReasonEngaged).afterOutage(), // the one before waits for its answer
				action(waitOutageLogged),
				action(ageRows),
				end,
			}},
			{title: outage.name + ": a message after the window is not", steps: []step{
				mentions(0, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute),
				begin,
				says(21, group, "lunch?").observed().afterOutage(),
				action(waitOutageLogged),
				end,
			}},
			{title: outage.name + ": an answer delivered meanwhile opens the window", steps: []step{
				mentions(0, group, "t1", "wait until released").starts(inGroup, msg.ReasonRoute).runsOn(),
				begin,
				releaseAgents(5, group),
				says(24, group, "thanks").starts(inGroup, msg.ReasonEngaged).afterOutage(),
				says(46, group, "and why?").starts(inGroup, msg.ReasonEngaged).afterOutage(), // the one before waits for its answer
				action(waitOutageLogged),
				action(ageRows),
				end,
			}},
			{title: outage.name + ": an answer delivered meanwhile extends the window", steps: []step{
				mentions(0, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute),
				says(10, group, "wait until released").starts(inGroup, msg.ReasonEngaged).runsOn(),
				begin,
				releaseAgents(15, group),
				says(34, group, "thanks").starts(inGroup, msg.ReasonEngaged).afterOutage(),
				says(56, group, "and why?").starts(inGroup, msg.ReasonEngaged).afterOutage(), // the one before waits for its answer
				action(waitOutageLogged),
				action(ageRows),
				end,
			}},
			{title: outage.name + ": a mention and its follow-up wait together", steps: []step{
				begin,
				says(0, group, "good morning").observed().afterOutage(),
				mentions(1, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute).afterOutage(),
				says(2, group, "it was fine yesterday").starts(inGroup, msg.ReasonEngaged).afterOutage(),
				action(waitOutageLogged),
				end,
				says(20, group, "thanks").starts(inGroup, msg.ReasonEngaged),
			}},
		}...)
	}
	runScenarios(t, all)
}
