// An aircraft's itinerary, from its departures and arrivals: everything in it depends on their order.
//
// The digest shows any loss, repeat or swap. The same handler as examples/itinerary, in Go.
package main

import (
	"time"

	"keyrail"
)

const (
	// Late: more than this.
	lateMinutes = 15
	// How long after a late arrival a late departure counts as its consequence.
	propagates = 6 * time.Hour
)

// Flight is what departures and arrivals tell.
type Flight struct {
	// Which aircraft: the key.
	TailNumber string `json:"tail_number"`
	// Two letters.
	Carrier string `json:"carrier"`
	// The carrier's number of the flight.
	Flight      int64     `json:"flight"`
	Origin      string    `json:"origin"`
	Destination string    `json:"destination"`
	At          time.Time `json:"at"`
	// Negative when early.
	DelayMinutes int64 `json:"delay_minutes"`
}

// EventCategory is the category of flights.
func (Flight) EventCategory() string { return "flight" }

// FlightDeparted says that an aircraft left.
type FlightDeparted struct{ Flight }

// FlightArrived says that an aircraft came in.
type FlightArrived struct{ Flight }

// Aircraft is the state of one aircraft: the value `itinerary`.
type Aircraft struct {
	// Departed, and not arrived since.
	Airborne bool  `json:"airborne"`
	Arrived  int64 `json:"arrived"`
	Departed int64 `json:"departed"`
	// Over the ids of all events, in order.
	Digest Digest `json:"digest"`
	// Where it was last.
	LastAirport string `json:"last_airport"`
	// The sum of positive arrival delays.
	MinutesLate int64 `json:"minutes_late"`
	// Departures while airborne.
	Overlaps int64 `json:"overlaps"`
	// Late departures soon after a late arrival.
	Propagated int64 `json:"propagated"`
	// What Propagated is computed from; not part of the result.
	LastArrival *Arrival `json:"last_arrival"`
}

// Arrival is an aircraft's latest arrival.
type Arrival struct {
	At           time.Time `json:"at"`
	DelayMinutes int64     `json:"delay_minutes"`
}

var handler = keyrail.Export(keyrail.Handler{
	Name:         "itinerary-go",
	Version:      "0.1.0",
	SequentialBy: "tail_number",
	Handles:      []keyrail.Handles{keyrail.On(departed), keyrail.On(arrived)},
})

func main() {} // Never called: the host calls the handler.

func departed(ctx *keyrail.Context, event FlightDeparted) error {
	return update(ctx, func(aircraft *Aircraft) {
		aircraft.Departed++
		if aircraft.Airborne {
			aircraft.Overlaps++
		}
		aircraft.Airborne = true
		if event.DelayMinutes > lateMinutes && aircraft.cameInLateBefore(event.At) {
			aircraft.Propagated++
		}
		aircraft.LastAirport = event.Origin
	})
}

func arrived(ctx *keyrail.Context, event FlightArrived) error {
	return update(ctx, func(aircraft *Aircraft) {
		aircraft.Arrived++
		aircraft.Airborne = false
		aircraft.MinutesLate += max(event.DelayMinutes, 0)
		aircraft.LastAirport = event.Destination
		aircraft.LastArrival = &Arrival{event.At, event.DelayMinutes}
	})
}

// update reads the aircraft, applies one event, and writes it.
func update(ctx *keyrail.Context, apply func(*Aircraft)) error {
	aircraft, found, err := keyrail.State[Aircraft](ctx, "itinerary")
	if err != nil {
		return err
	}
	if !found {
		aircraft.Digest = emptyDigest
	}
	apply(&aircraft)
	aircraft.Digest = aircraft.Digest.add(ctx.ID)
	return ctx.PutState("itinerary", aircraft)
}

// cameInLateBefore says whether its latest arrival was late and at most six hours before then.
func (a *Aircraft) cameInLateBefore(then time.Time) bool {
	return a.LastArrival != nil && a.LastArrival.DelayMinutes > lateMinutes && then.Sub(a.LastArrival.At) <= propagates
}
