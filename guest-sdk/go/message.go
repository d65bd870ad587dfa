package keyrail

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Event is a type of event or command: a struct whose exported fields are the members of the JSON object, by their
// `json` tags. Name and version are the struct's name and 1 unless it is also [Named] or [Versioned].
//
// A field is optional if it is a pointer or its tag says omitempty or omitzero. Its type is found from the Go type;
// `keyrail:"timestamp"` (or text, integer, number, boolean, list, object, binary) says what the Go type does not.
type Event interface {
	// EventCategory is the kind of stream: `[a-z][a-z0-9_.-]{0,63}`. It must not depend on the value.
	EventCategory() string
}

// Named is an event whose name is not that of its struct.
type Named interface{ EventName() string }

// Versioned is an event whose version is not 1.
type Versioned interface{ EventVersion() uint32 }

// FieldType is what a field of a message holds, in JSON. A key is text or an integer.
type FieldType uint8

// The numbers are those of the contract.
const (
	// Text is a string.
	Text FieldType = iota
	// Integer is a number without a fraction, of 64 bits.
	Integer
	// Number is any number.
	Number
	// Boolean is true or false.
	Boolean
	// Timestamp is a string of RFC 3339.
	Timestamp
	// List is a list.
	List
	// Object is an object.
	Object
	// Binary is a string of base64.
	Binary
)

var fieldTypes = [...]string{"text", "integer", "number", "boolean", "timestamp", "list", "object", "binary"}

func (t FieldType) String() string { return fieldTypes[t] }

// Field is one member of an event's JSON object.
type Field struct {
	Name     string
	Type     FieldType
	Required bool
}

// MessageType is a type of message as the handler understands it.
type MessageType struct {
	Category string
	Name     string
	Version  uint32
	Fields   []Field
}

// TypeOf is the message type of T. It panics if T is not a struct of fields that JSON can carry.
func TypeOf[T Event]() MessageType {
	var zero T
	return typeOf(zero)
}

func typeOf(event Event) MessageType {
	goType := reflect.TypeOf(event)
	if goType == nil || goType.Kind() != reflect.Struct {
		panic(fmt.Sprintf("keyrail: an event is a struct, not %v", goType))
	}
	kind := identityOf(event)
	kind.Fields = fieldsOf(goType)
	return kind
}

// identityOf is the message type without its fields: all that an emit needs.
func identityOf(event Event) MessageType {
	kind := MessageType{Category: event.EventCategory(), Version: 1}
	if named, ok := event.(Named); ok {
		kind.Name = named.EventName()
	} else {
		goType := reflect.TypeOf(event)
		if goType.Kind() == reflect.Pointer {
			goType = goType.Elem()
		}
		kind.Name = goType.Name()
	}
	if versioned, ok := event.(Versioned); ok {
		kind.Version = versioned.EventVersion()
	}
	return kind
}

func fieldsOf(goType reflect.Type) []Field {
	var fields []Field
	for i := range goType.NumField() {
		member := goType.Field(i)
		tag, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		if tag == "-" && options == "" {
			continue
		}
		if member.Anonymous && tag == "" && member.Type.Kind() == reflect.Struct {
			fields = append(fields, fieldsOf(member.Type)...)
			continue
		}
		if !member.IsExported() {
			continue
		}
		field := Field{Name: member.Name, Required: true}
		if tag != "" {
			field.Name = tag
		}
		inner := member.Type
		if inner.Kind() == reflect.Pointer {
			inner, field.Required = inner.Elem(), false
		}
		for option := range strings.SplitSeq(options, ",") {
			if option == "omitempty" || option == "omitzero" {
				field.Required = false
			}
		}
		field.Type = fieldType(goType, member, inner)
		fields = append(fields, field)
	}
	return fields
}

var (
	timeType      = reflect.TypeFor[time.Time]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
)

func fieldType(of reflect.Type, member reflect.StructField, inner reflect.Type) FieldType {
	if said, ok := member.Tag.Lookup("keyrail"); ok {
		for number, name := range fieldTypes {
			if name == said {
				return FieldType(number)
			}
		}
		panic(fmt.Sprintf("keyrail: %s.%s: %q is no type of a field: %s", of, member.Name, said, strings.Join(fieldTypes[:], ", ")))
	}
	if inner == timeType {
		return Timestamp
	}
	if inner != rawType && !inner.Implements(marshalerType) {
		switch inner.Kind() {
		case reflect.String:
			return Text
		case reflect.Bool:
			return Boolean
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			return Integer
		case reflect.Float32, reflect.Float64:
			return Number
		case reflect.Slice, reflect.Array:
			if inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Uint8 {
				return Binary
			}
			return List
		case reflect.Map, reflect.Struct:
			return Object
		}
	}
	panic(fmt.Sprintf("keyrail: %s.%s: say what %s is in JSON, for example with a tag keyrail:\"object\"", of, member.Name, inner))
}
