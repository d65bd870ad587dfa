package keyrail

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

type base struct {
	Key string `json:"key"`
}

type everything struct {
	base
	Plain    string
	Count    uint32          `json:"count"`
	Ratio    float64         `json:"ratio"`
	Is       bool            `json:"is"`
	When     time.Time       `json:"when"`
	Many     []string        `json:"many"`
	Nested   struct{ A int } `json:"nested"`
	ByName   map[string]int  `json:"by_name"`
	Bytes    []byte          `json:"bytes"`
	Maybe    *int64          `json:"maybe"`
	Omitted  string          `json:"omitted,omitempty"`
	Said     string          `json:"said" keyrail:"timestamp"`
	Any      json.RawMessage `json:"any" keyrail:"object"`
	Skipped  string          `json:"-"`
	internal int
}

func (everything) EventCategory() string { return "things" }
func (everything) EventVersion() uint32  { return 2 }
func (everything) EventName() string     { return "Everything" }

func TestAMessageTypeIsReadFromTheStruct(t *testing.T) {
	want := MessageType{
		Category: "things", Name: "Everything", Version: 2,
		Fields: []Field{
			{"key", Text, true}, {"Plain", Text, true}, {"count", Integer, true}, {"ratio", Number, true},
			{"is", Boolean, true}, {"when", Timestamp, true}, {"many", List, true}, {"nested", Object, true},
			{"by_name", Object, true}, {"bytes", Binary, true}, {"maybe", Integer, false}, {"omitted", Text, false},
			{"said", Timestamp, true}, {"any", Object, true},
		},
	}
	if got := TypeOf[everything](); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nnot %+v", got, want)
	}
}

type vague struct {
	Any any `json:"any"`
}

func (vague) EventCategory() string { return "things" }

type misnamed struct {
	Any string `json:"any" keyrail:"string"`
}

func (misnamed) EventCategory() string { return "things" }

func TestAFieldThatCannotBeDeclaredIsNamed(t *testing.T) {
	for name, declare := range map[string]func(){
		"keyrail.vague.Any": func() { TypeOf[vague]() }, "keyrail.misnamed.Any": func() { TypeOf[misnamed]() },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, name) {
					t.Errorf("%s: %q", name, text)
				}
			}()
			declare()
		}()
	}
}

func TestTextPassesThroughJSONUnchanged(t *testing.T) {
	for _, text := range []string{"<&>", "\u2028", "a\x00b", "\U0001F600", "e\u0301"} {
		written, err := toJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		var read string
		if err := json.Unmarshal(written, &read); err != nil || read != text {
			t.Errorf("%q became %s, then %q (%v)", text, written, read, err)
		}
	}
}
