// Package keyrail is for writing Keyrail handlers in Go.
//
// A handler is a value: its name, what orders its events, and one function for each type of event. A function that
// returns nil keeps its state writes and emits; any error means another try, and [Reject] gives up.
//
//	type OrderPlaced struct {
//		OrderID     string `json:"order_id"`
//		AmountCents int64  `json:"amount_cents"`
//	}
//
//	func (OrderPlaced) EventCategory() string { return "order" }
//
//	func orderPlaced(ctx *keyrail.Context, event OrderPlaced) error {
//		orders, _, err := keyrail.State[int](ctx, "orders")
//		if err != nil {
//			return err
//		}
//		return ctx.PutState("orders", orders+1)
//	}
//
//	var handler = keyrail.Export(keyrail.Handler{
//		Name:         "billing",
//		Version:      "1.0.0",
//		SequentialBy: "order_id",
//		Handles:      []keyrail.Handles{keyrail.On(orderPlaced)},
//	})
//
//	func main() {} // Never called: the host calls the handler.
//
// Package keyrailtest runs a handler in an ordinary Go test. Built for wasip1 the same program becomes a component:
// [Export] is what the host finds there, and does nothing elsewhere.
package keyrail
