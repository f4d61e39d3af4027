// Package delegation has the messages of agents that hand work to each other: a Request asks for
// work, an Act asks about it or changes it, and a Response reports its state.
//
//	ReadRequest, ReadAct, ReadResponse     check a message that was split into members
//	AppendAct, AppendResponse, Forwarded   write one
//	FaultOf                                turns a refusal into the error of a Response
//	Attach, Detach                         keep large content of artifacts outside the record
//
// Documents are kept digit for digit. Null counts as missing, since many programs write null for
// an absent value. Which work is open, and who gets what, is decided in the package handlers.
package delegation
