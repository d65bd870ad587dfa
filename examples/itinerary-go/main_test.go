package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"keyrail"
	"keyrail/keyrailtest"
)

const flights = "../flights/"

// Every aircraft of the sample ends with the state that its events give in order.
func TestTheSampleOfRealFlights(t *testing.T) {
	harness := keyrailtest.New(t, handler)
	for line := range lines(t, flights+"sample.jsonl.gz") {
		if delivery := harness.DeliverLine(line); delivery.Disposition.Outcome != keyrail.Done {
			t.Fatal(delivery)
		}
	}
	aircraft := 0
	for line := range lines(t, flights+"sample.itinerary.jsonl") {
		var want map[string]any
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		tailNumber := want["tail_number"].(string)
		delete(want, "tail_number")
		got, found := keyrailtest.State[map[string]any](harness, tailNumber, "itinerary")
		delete(got, "last_arrival")
		if !found || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, not %v", tailNumber, got, want)
		}
		aircraft++
	}
	if aircraft == 0 {
		t.Error("nothing to compare with")
	}
}

func lines(t *testing.T, path string) func(func(string) bool) {
	return func(yield func(string) bool) {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		scanner := bufio.NewScanner(file)
		if unzipped, err := gzip.NewReader(file); err == nil {
			scanner = bufio.NewScanner(unzipped)
		} else if _, err := file.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		for scanner.Scan() && yield(scanner.Text()) {
		}
		if err := scanner.Err(); err != nil {
			t.Error(err)
		}
	}
}
