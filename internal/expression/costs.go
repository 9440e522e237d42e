// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"math/bits"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// A cost is the upper bound of the steps that a call takes, computed from its arguments in at most as many steps. A step is about
// a nanosecond; a byte that is allocated counts as ten. It need not be exact above the limit. The arguments may have any types
// and any number.
type cost func(args []ref.Val, limit uint64) uint64

const (
	// perNode is the cost of a node, whatever it is, and perCall of a call that looks at no text and no collection.
	perNode, perCall = 100, 150
	// perValue is the cost of a visit to a value, whatever it is.
	perValue = 200
	// perCopied is the cost of a byte that is read and written, and perEncoded of one that becomes up to six.
	perCopied, perEncoded = 20, 80
	// perInstruction is the cost of compiling an instruction of a regular expression, and perMatched of one with one byte.
	perInstruction, perMatched = 1000, 10
	// perZone is the cost of loading a time zone, which is a file.
	perZone = 200_000
	// perNumber is the cost of a number in a format, with the highest precision.
	perNumber = 5000
)

// costs of all functions that are offered. A function without one is not.
var costs = map[string]cost{
	operators.LogicalNot: fixed, operators.Negate: fixed, operators.Subtract: fixed, operators.Multiply: fixed,
	operators.Divide: fixed, operators.Modulo: fixed, operators.NotStrictlyFalse: fixed, "__not_strictly_false__": fixed,
	overloads.TypeConvertDyn: fixed, overloads.TypeConvertType: fixed, overloads.TypeConvertBool: fixed,
	"optional.of": fixed, "optional.none": fixed, "optional.ofNonZeroValue": fixed, "hasValue": fixed, "value": fixed,
	optionalFunction: fixed, "or": fixed, "orValue": fixed, "first": fixed, "last": fixed,

	operators.Equals: deep, operators.NotEquals: deep, operators.In: contains, operators.OldIn: contains, "in": contains,
	operators.Less: text(1), operators.LessEquals: text(1), operators.Greater: text(1), operators.GreaterEquals: text(1),
	overloads.Size: text(1), overloads.StartsWith: text(1), overloads.EndsWith: text(1), "trim": text(2),
	operators.Add: add, keyFunction: text(1),

	overloads.TypeConvertInt: text(perCopied), overloads.TypeConvertUint: text(perCopied), overloads.TypeConvertDouble: text(perCopied),
	overloads.TypeConvertString: text(perCopied), overloads.TypeConvertBytes: text(perCopied),
	overloads.TypeConvertTimestamp: text(perCopied), overloads.TypeConvertDuration: text(perCopied),
	"lowerAscii": text(perCopied), "upperAscii": text(perCopied), "reverse": text(perCopied), "substring": text(perCopied), "charAt": text(perCopied),
	"base64.encode": text(perCopied), "base64.decode": text(perCopied), "strings.quote": text(perEncoded),

	overloads.Contains: search, "indexOf": search, "lastIndexOf": search, overloads.Matches: match,
	"split": split, "replace": replace, "join": join, "format": format, "json.encode": encode,
	"sets.contains": sets, "sets.intersects": sets, "sets.equivalent": sets, "optional.unwrap": encode, "unwrapOpt": encode,

	overloads.TimeGetFullYear: zoned, overloads.TimeGetMonth: zoned, overloads.TimeGetDayOfYear: zoned, overloads.TimeGetDate: zoned,
	overloads.TimeGetDayOfMonth: zoned, overloads.TimeGetDayOfWeek: zoned, overloads.TimeGetHours: zoned,
	overloads.TimeGetMinutes: zoned, overloads.TimeGetSeconds: zoned, overloads.TimeGetMilliseconds: zoned,
}

func fixed([]ref.Val, uint64) uint64 { return perCall }

// text costs so many steps for each byte of the strings and bytes among the arguments.
func text(perByte uint64) cost {
	return func(args []ref.Val, _ uint64) uint64 {
		sum := uint64(perCall)
		for _, arg := range args {
			sum = add64(sum, mul64(perByte, length(arg)))
		}
		return sum
	}
}

// deep costs a visit of everything in the arguments.
func deep(args []ref.Val, limit uint64) uint64 { return add64(perCall, weigh(limit, args...)) }

// contains costs a visit of the value, and of everything in a list.
func contains(args []ref.Val, limit uint64) uint64 {
	if len(args) == 2 {
		if _, hashed := args[1].(traits.Mapper); hashed {
			args = args[:1]
		}
	}
	return deep(args, limit)
}

// encode costs the text of everything in the arguments.
func encode(args []ref.Val, limit uint64) uint64 {
	return add64(perCall, mul64(perEncoded, weigh(limit/perEncoded, args...)))
}

// add costs the result. A list that a loop makes grows in place.
func add(args []ref.Val, limit uint64) uint64 {
	sum := text(perCopied)(args, limit)
	for i, arg := range args {
		if _, grows := arg.(traits.MutableLister); !grows || i > 0 {
			sum = add64(sum, mul64(perValue, count(arg)))
		}
	}
	return sum
}

// search costs a comparison of the second argument with each place of the first one: the library's search does that, at its
// slowest for texts such as aaaa and aaab.
func search(args []ref.Val, limit uint64) uint64 {
	sum := text(perCopied)(args, limit)
	if len(args) < 2 {
		return sum
	}
	where, what := length(args[0]), length(args[1])
	if what > where {
		return sum
	}
	return add64(sum, mul64(where-what+1, what))
}

// match costs what matches does for a pattern that it does not refuse.
func match(args []ref.Val, limit uint64) uint64 {
	sum := text(1)(args, limit)
	if len(args) != 2 {
		return sum
	}
	size := instructions(args[1])
	if length(args[0]) > longestMatched || mul64(size, length(args[0])) > mostSteps {
		return sum
	}
	return add64(sum, mul64(size, add64(perInstruction, perMatched*length(args[0]))))
}

// pieces is how many strings the separator divides a text into, at most.
func pieces(args []ref.Val) uint64 {
	if len(args) < 2 {
		return 1
	}
	return length(args[0])/max(1, length(args[1])) + 2
}

func split(args []ref.Val, limit uint64) uint64 {
	return add64(text(perCopied)(args, limit), mul64(perValue, pieces(args)))
}

func replace(args []ref.Val, limit uint64) uint64 {
	sum := text(perCopied)(args, limit)
	if len(args) < 3 {
		return sum
	}
	return add64(sum, mul64(pieces(args), add64(perCall, mul64(perCopied, length(args[2])))))
}

func join(args []ref.Val, limit uint64) uint64 {
	if len(args) == 0 {
		return perCall
	}
	sum := add64(perCall, mul64(perCopied, weigh(limit/perCopied, args...)))
	if len(args) > 1 {
		sum = add64(sum, mul64(count(args[0]), mul64(perCopied, length(args[1]))))
	}
	return sum
}

func format(args []ref.Val, limit uint64) uint64 {
	sum := encode(args, limit)
	if len(args) > 1 {
		sum = add64(sum, mul64(perNumber, count(args[1])))
	}
	return sum
}

// sets costs a comparison of each element of one list with each element of the other. Comparing two values costs at most what the
// smaller one weighs.
func sets(args []ref.Val, limit uint64) uint64 {
	if len(args) != 2 {
		return perCall
	}
	a, b := weigh(limit, args[0]), weigh(limit, args[1])
	return add64(add64(a, b), mul64(2, min(mul64(count(args[0]), b), mul64(count(args[1]), a))))
}

// zoned costs a time zone, which is loaded for each call.
func zoned(args []ref.Val, limit uint64) uint64 {
	if len(args) < 2 {
		return perCall
	}
	return add64(perZone, text(perCopied)(args, limit))
}

// length of a text in bytes; 0 for everything else.
func length(value ref.Val) uint64 {
	switch of := value.(type) {
	case types.String:
		return uint64(len(of))
	case types.Bytes:
		return uint64(len(of))
	case *types.Optional:
		if of.HasValue() {
			return length(of.GetValue())
		}
	}
	return 0
}

// count of the elements of a list or a map; 0 for everything else.
func count(value ref.Val) uint64 {
	switch value.(type) {
	case traits.Lister, traits.Mapper:
		if n, ok := value.(traits.Sizer).Size().(types.Int); ok && n >= 0 {
			return uint64(n)
		}
	}
	return 0
}

// weigh adds up all values in some values, and the bytes of their texts, with those in several places as often as they are there.
// It stops above the limit: a short expression makes lists of lists with more values than there is time.
func weigh(limit uint64, values ...ref.Val) uint64 {
	w := scale{limit: limit}
	for _, value := range values {
		w.add(value)
	}
	return w.sum
}

// scale is the weight of values so far.
type scale struct{ sum, limit uint64 }

func (s *scale) add(value ref.Val) {
	if s.sum > s.limit {
		return
	}
	switch of := value.(type) {
	case traits.Lister:
		if native, ok := of.Value().([]any); ok && uint64(len(native)) == count(of) {
			s.addNative(native)
			return
		}
		s.sum += perValue
		for it := of.Iterator(); s.sum <= s.limit && it.HasNext() == types.True; {
			s.add(it.Next())
		}
	case traits.Mapper:
		if native, ok := of.Value().(map[string]any); ok && uint64(len(native)) == count(of) {
			s.addNative(native)
			return
		}
		s.sum += perValue
		for it := of.Iterator(); s.sum <= s.limit && it.HasNext() == types.True; {
			key := it.Next()
			s.add(key)
			element, _ := of.Find(key)
			s.add(element)
		}
	case *types.Optional:
		s.sum += perValue
		if of.HasValue() {
			s.add(of.GetValue())
		}
	default:
		s.sum += perValue + length(value)
	}
}

// addNative adds what an object of the API consists of, without making values of CEL of it.
func (s *scale) addNative(value any) {
	if s.sum > s.limit {
		return
	}
	switch of := value.(type) {
	case ref.Val:
		s.add(of)
	case []any:
		s.sum += perValue
		for _, element := range of {
			s.addNative(element)
		}
	case map[string]any:
		s.sum += perValue
		for key, element := range of {
			s.sum += perValue + uint64(len(key))
			s.addNative(element)
		}
	case string:
		s.sum += perValue + uint64(len(of))
	case []byte:
		s.sum += perValue + uint64(len(of))
	default:
		s.sum += perValue
	}
}

func add64(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return ^uint64(0)
	}
	return sum
}

func mul64(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return ^uint64(0)
	}
	return low
}
