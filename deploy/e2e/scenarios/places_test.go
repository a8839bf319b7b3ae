package scenarios

import (
	"testing"

	"arizuko/pkg/msg"
)

// Where the stories happen.
var (
	channel  = room("slack:C1")
	thread   = in("slack:C1", "1.1")
	general  = room("telegram:-5")
	forum7   = in("telegram:-5", "7")
	forum8   = in("telegram:-5", "8")
	webChat  = room("web:main")
	internal = room("group:main")
)

// opened is a thread of a Slack channel with a session of its own.
var opened = asked{"main", "1.1", "1.1", "1.1", "slack-channel-thread 4000"}

// deploying is the same thread with the session of the topic #deploy.
var deploying = asked{"main", "#deploy", "1.1", "1.1", "slack-channel-thread 4000"}

func TestSlackThreads(t *testing.T) {
	child := asked{"main/eng", "1.1", "1.1", "1.1", "slack-channel-thread 4000"}
	second := asked{"main", "2.2", "2.2", "2.2", "slack-channel-thread 4000"}
	play(t, []story{
		{title: "a call in a channel opens a thread off it, in which the talk goes on", steps: []step{
			says(0, channel, "good morning").isHeard(),
			calls(1, channel, "1.1", "what broke?").asking(opened, msg.ReasonRoute),
			says(20, thread, "tell me more").asking(opened, msg.ReasonEngaged),
			says(39, thread, "and why?").asking(opened, msg.ReasonEngaged),
			threadHolds(thread, "what broke?", "tell me more", "and why?"),
		}},
		{title: "the channel beside the thread stays as it was, and so do other threads", steps: []step{
			calls(0, channel, "1.1", "what broke?").asking(opened, msg.ReasonRoute),
			says(1, channel, "lunch?").isHeard(),
			says(2, in("slack:C1", "2.2"), "pizza").isHeard(),
			says(3, in("slack:C2", "1.1"), "a thread of the same name").isHeard(),
			says(4, thread, "tell me more").asking(opened, msg.ReasonEngaged),
		}},
		{title: "after twenty minutes of silence it has to be called again, and remembers", steps: []step{
			calls(0, channel, "1.1", "what broke?").asking(opened, msg.ReasonRoute),
			says(21, thread, "anybody there?").isHeard(),
			calls(22, thread, "1.3", "are you there?").asking(opened, msg.ReasonRoute),
			says(23, thread, "good").asking(opened, msg.ReasonEngaged),
			threadHolds(thread, "what broke?", "anybody there?", "are you there?", "good"),
		}},
		{title: "two calls in a channel open two threads", steps: []step{
			together(
				calls(0, channel, "1.1", "what broke?").asking(opened, msg.ReasonRoute),
				calls(0, channel, "2.2", "what is for lunch?").asking(second, msg.ReasonRoute),
			),
			says(1, thread, "tell me more").asking(opened, msg.ReasonEngaged),
			says(1, in("slack:C1", "2.2"), "again?").asking(second, msg.ReasonEngaged),
		}},
		{title: "a call in a thread that people opened is answered there", steps: []step{
			says(0, thread, "among us").isHeard(),
			calls(1, thread, "1.2", "what do you say?").asking(opened, msg.ReasonRoute),
			says(2, thread, "I see").asking(opened, msg.ReasonEngaged),
			says(3, channel, "lunch?").isHeard(),
		}},
		{title: "what a route asks without a call is answered in the channel", routes: []route{{"platform=slack", "main"}}, steps: []step{
			says(0, channel, "good morning").asking(asked{"main", "", "", "", "slack-channel 200"}, msg.ReasonRoute),
			calls(1, channel, "1.1", "what broke?").asking(opened, msg.ReasonRoute),
		}},
		{title: "#name in a call binds the thread to that topic", steps: []step{
			calls(0, channel, "1.1", "#deploy ship it").asking(deploying, msg.ReasonPrefixTopic),
			says(1, thread, "how far?").asking(deploying, msg.ReasonEngaged),
			says(22, thread, "among us").isHeard(),
			calls(23, thread, "1.4", "and now?").asking(deploying, msg.ReasonRoute),
			threadHolds(thread, "ship it", "how far?", "among us", "and now?"),
			calls(24, channel, "2.2", "what is for lunch?").asking(second, msg.ReasonRoute),
		}},
		{title: "so it is for what is said in the thread at once", steps: []step{
			together(
				calls(0, channel, "1.1", "#deploy ship it").asking(deploying, msg.ReasonPrefixTopic),
				says(0, thread, "and hurry").asking(deploying, msg.ReasonEngaged),
			),
		}},
		{title: "what is asked afresh opens a thread, too", steps: []step{
			calls(0, channel, "1.1", "/new what broke?").asking(opened, msg.ReasonCommand),
			says(1, thread, "tell me more").asking(opened, msg.ReasonEngaged),
			says(2, channel, "lunch?").isHeard(),
			threadHolds(thread, "what broke?", "tell me more"),
		}},
		{title: "@name in a call has the child answer in the thread", steps: []step{
			calls(0, channel, "1.1", "@eng what broke?").asking(child, msg.ReasonPrefixGroup),
			says(1, thread, "why?").asking(child, msg.ReasonEngaged),
			says(2, channel, "lunch?").isHeard(),
		}},
		{title: "#name inside a thread runs there once and binds nothing", steps: []step{
			calls(0, channel, "1.1", "what broke?").asking(opened, msg.ReasonRoute),
			says(1, thread, "#deploy ship it").asking(deploying, msg.ReasonPrefixTopic),
			says(2, thread, "thanks").asking(opened, msg.ReasonEngaged),
			threadHolds(thread, "what broke?", "#deploy ship it", "ship it", "thanks"),
		}},
		{title: "in a channel pinned to a topic each call opens a thread under it; they do not merge", steps: []step{
			says(0, channel, "#deploy").becomes(msg.ReasonStickyTopic),
			together(
				calls(1, channel, "1.1", "the front end").asking(deploying, msg.ReasonRoute),
				calls(1, channel, "2.2", "the back end").asking(asked{"main", "#deploy", "2.2", "2.2", "slack-channel-thread 4000"}, msg.ReasonRoute),
			),
			says(2, channel, "#").becomes(msg.ReasonStickyReset),
			says(3, thread, "how far?").asking(deploying, msg.ReasonEngaged),
		}},
		{title: "direct messages and panes open no threads", steps: []step{
			says(0, room("slack:D1"), "hello").asking(asked{"main", "", "", "", "slack-dm 4000"}, msg.ReasonRoute),
			calls(1, room("slack:D1"), "5.1", "hello again").asking(asked{"main", "", "", "", "slack-dm 4000"}, msg.ReasonRoute),
			calls(2, in("slack:D1", "5.5"), "5.6", "in a pane").asking(asked{"main", "5.5", "5.5", "5.5", "slack-pane 4000"}, msg.ReasonRoute),
		}},
	})
}

func TestTopicsAndPlaces(t *testing.T) {
	topic7 := asked{"main", "7", "7", "7", "telegram-topic 4000"}
	inGeneral := asked{"main", "", "", "", "telegram-group 1500"}
	pinned := func(thread string) asked { return asked{"main", "#deploy", thread, thread, "telegram-topic 4000"} }
	play(t, []story{
		{title: "a forum topic is a place of its own, and General another", steps: []step{
			calls(0, forum7, "t1", "what broke?").asking(topic7, msg.ReasonRoute),
			says(1, forum7, "tell me more").asking(topic7, msg.ReasonEngaged),
			says(2, general, "lunch?").isHeard(),
			says(3, forum8, "pizza").isHeard(),
			calls(4, general, "t2", "what is for lunch?").asking(inGeneral, msg.ReasonRoute),
			says(5, general, "again?").asking(inGeneral, msg.ReasonEngaged),
			says(6, forum8, "pizza").isHeard(),
		}},
		{title: "a pinned topic decides the session, the forum topic where the reply goes", steps: []step{
			says(0, forum7, "#deploy").becomes(msg.ReasonStickyTopic),
			calls(1, forum7, "t1", "ship it").asking(pinned("7"), msg.ReasonRoute),
			says(2, forum7, "how far?").asking(pinned("7"), msg.ReasonEngaged),
			says(3, forum7, "#fix this too").asking(pinned("7"), msg.ReasonPrefixTopic),
			says(4, general, "lunch?").isHeard(),
			calls(5, general, "t2", "and here?").asking(asked{"main", "#deploy", "", "", "telegram-group 1500"}, msg.ReasonRoute),
			says(6, forum7, "#").becomes(msg.ReasonStickyReset),
			says(7, forum7, "and now?").asking(topic7, msg.ReasonEngaged),
		}},
		{title: "two forum topics under one pinned topic do not merge", steps: []step{
			says(0, general, "#deploy").becomes(msg.ReasonStickyTopic),
			together(
				calls(1, forum7, "t1", "the front end").asking(pinned("7"), msg.ReasonRoute),
				calls(1, forum8, "t2", "the back end").asking(pinned("8"), msg.ReasonRoute),
				says(1, forum7, "of the shop").asking(pinned("7"), msg.ReasonEngaged),
			),
			says(2, forum8, "how far?").asking(pinned("8"), msg.ReasonEngaged),
		}},
		{title: "#name outside of threads engages that topic alone", steps: []step{
			calls(0, general, "t1", "#deploy ship it").asking(asked{"main", "#deploy", "", "#deploy", "telegram-group 1500"}, msg.ReasonPrefixTopic),
			says(1, general, "lunch?").isHeard(),
		}},
		{title: "a Discord thread and its channel", steps: []step{
			calls(0, room("discord:6"), "d1", "what broke?").asking(asked{"main", "", "", "", "discord-channel 1500"}, msg.ReasonRoute),
			says(1, room("discord:6"), "tell me more").asking(asked{"main", "", "", "", "discord-channel 1500"}, msg.ReasonEngaged),
			says(2, in("discord:6", "9"), "among us").isHeard(),
			calls(3, in("discord:6", "9"), "d2", "and you?").asking(asked{"main", "9", "9", "9", "discord-thread 4000"}, msg.ReasonRoute),
			says(22, in("discord:6", "9"), "I see").asking(asked{"main", "9", "9", "9", "discord-thread 4000"}, msg.ReasonEngaged),
			says(23, room("discord:6"), "lunch?").isHeard(),
		}},
		{title: "direct messages are all meant for the bot", steps: []step{
			says(0, room("telegram:5"), "hello").asking(asked{"main", "", "", "", "telegram-dm 4000"}, msg.ReasonRoute),
			says(1, room("discord:dm-5"), "hello").asking(asked{"main", "", "", "", "discord-dm 4000"}, msg.ReasonRoute),
			says(60, room("telegram:5"), "still there?").asking(asked{"main", "", "", "", "telegram-dm 4000"}, msg.ReasonRoute),
		}},
		{title: "a tab of the web chat is a topic, and the answer appears in it", steps: []step{
			says(0, webChat, "hello").asking(asked{"main", "", "", "", "web 4000"}, msg.ReasonAddress),
			says(1, tab("web:main", "#a"), "hello").asking(asked{"main", "#a", "", "#a", "web 4000"}, msg.ReasonAddress),
			says(2, tab("web:main", "#a"), "#b over there").asking(asked{"main", "#b", "", "#b", "web 4000"}, msg.ReasonPrefixTopic),
		}},
		{title: "a group's own address asks that group", steps: []step{
			says(0, internal, "hello").asking(asked{"main", "", "", "", "group 4000"}, msg.ReasonAddress),
			says(1, room("group:main/eng"), "hello").asking(asked{"main/eng", "", "", "", "group 4000"}, msg.ReasonAddress),
		}},
	})
}
