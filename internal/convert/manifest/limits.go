// SPDX-License-Identifier: Apache-2.0

package manifest

import "github.com/spf13/pflag"

// Limits bound what the manifests of one bundle may be. Input at a limit is accepted, one more is refused.
type Limits struct {
	// FileBytes is the size of the text of one manifest file, TotalBytes that of all together. Much of a large one is indentation
	// and line breaks, which no object keeps.
	FileBytes, TotalBytes int64
	// ObjectBytes is the size of one object as JSON, in which the API server stores it: etcd accepts 1.5 MiB a request by default.
	ObjectBytes int64
	// Documents counts YAML and JSON documents, empty ones too; Objects what they contain, items of lists each.
	Documents, Objects int
	// Values counts mappings, lists and scalars of all manifests, as often as aliases repeat them: what a few bytes of text can
	// become in memory. A million take about 250 MiB at worst.
	Values int
	// Depth is how deep mappings and lists may nest.
	Depth int
}

// DefaultLimits are the limits that apply by default.
func DefaultLimits() Limits {
	return Limits{FileBytes: 8 << 20, TotalBytes: 16 << 20, ObjectBytes: 3 << 19, Documents: 100_000, Objects: 25_000, Values: 1_000_000, Depth: 100}
}

// BindFlags makes each limit a flag, with the present value as its default.
func (l *Limits) BindFlags(flags *pflag.FlagSet) {
	flags.Int64Var(&l.FileBytes, "limit-manifest-bytes", l.FileBytes, "Largest size of the text of one manifest file, in bytes.")
	flags.Int64Var(&l.TotalBytes, "limit-manifests-bytes", l.TotalBytes, "Largest size of all manifests of a bundle, in bytes.")
	flags.Int64Var(&l.ObjectBytes, "limit-object-bytes", l.ObjectBytes, "Largest size of one object, in bytes of JSON; etcd accepts 1.5 MiB a request by default.")
	flags.IntVar(&l.Documents, "limit-manifest-documents", l.Documents, "Most YAML or JSON documents in a bundle.")
	flags.IntVar(&l.Objects, "limit-objects", l.Objects, "Most objects in a bundle.")
	flags.IntVar(&l.Values, "limit-manifest-values", l.Values, "Most mappings, lists and scalars in all manifests of a bundle.")
	flags.IntVar(&l.Depth, "limit-manifest-depth", l.Depth, "Deepest nesting of mappings and lists in a manifest.")
}

// OrDefault replaces limits that are not set (zero or less) by their defaults.
func (l Limits) OrDefault() Limits {
	d := DefaultLimits()
	return Limits{
		FileBytes:   positive(l.FileBytes, d.FileBytes),
		TotalBytes:  positive(l.TotalBytes, d.TotalBytes),
		ObjectBytes: positive(l.ObjectBytes, d.ObjectBytes),
		Documents:   positive(l.Documents, d.Documents),
		Objects:     positive(l.Objects, d.Objects),
		Values:      positive(l.Values, d.Values),
		Depth:       positive(l.Depth, d.Depth),
	}
}

func positive[N int | int64](value, fallback N) N {
	if value > 0 {
		return value
	}
	return fallback
}
