// The handler {{name}}: counts orders and adds up their amounts, for each order's key.
package main

import "keyrail"

// OrderPlaced says that an order was placed.
type OrderPlaced struct {
	// Which order: the key.
	OrderID     string `json:"order_id"`
	AmountCents int64  `json:"amount_cents"`
}

// EventCategory is the category of orders.
func (OrderPlaced) EventCategory() string { return "order" }

// Order is the state of one order: the value `order`.
type Order struct {
	Count      int64 `json:"count"`
	TotalCents int64 `json:"total_cents"`
}

var handler = keyrail.Export(keyrail.Handler{
	Name:         "{{name}}",
	Version:      "0.1.0",
	SequentialBy: "order_id",
	Handles:      []keyrail.Handles{keyrail.On(orderPlaced)},
})

func main() {} // Never called: the host calls the handler.

// Events of one order run one at a time, in the order in which they were published.
func orderPlaced(ctx *keyrail.Context, event OrderPlaced) error {
	if event.AmountCents < 0 {
		// No later try can help: the key stands still until somebody decides.
		return keyrail.Reject("an order cannot cost less than nothing")
	}
	order, _, err := keyrail.State[Order](ctx, "order")
	if err != nil {
		return err
	}
	order.Count++
	order.TotalCents += event.AmountCents
	ctx.Infof("%s has %d so far", event.OrderID, order.TotalCents)
	return ctx.PutState("order", order)
}
