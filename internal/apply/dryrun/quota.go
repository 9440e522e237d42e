// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// excess is what the API server says of an exceeded quota: of the resources that are exceeded alone.
type excess struct {
	quota                    string
	requested, used, limited map[string]resource.Quantity
}

var excessOf = regexp.MustCompile(`exceeded quota: ([^,]+), requested: (\S+), used: (\S+), limited: (\S+)`)

// exceeded is the quota for which an object is refused; nil for another refusal.
func exceeded(f *objecterror.Error) *excess {
	found := excessOf.FindStringSubmatch(f.Message)
	if found == nil {
		return nil
	}
	return &excess{quota: found[1], requested: quantities(found[2]), used: quantities(found[3]), limited: quantities(found[4])}
}

// quantities reads "pods=1,requests.storage=1Gi".
func quantities(text string) map[string]resource.Quantity {
	read := map[string]resource.Quantity{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		if quantity, plain := plainQuantity(value); plain {
			read[name] = quantity
		}
	}
	return read
}

// plain are quantities that cost nothing to add and compare. A number with an exponent, such as 1e2147483647, becomes one with as
// many digits, and who serves the API of a remote cluster chooses it.
var plain = regexp.MustCompile(`^[0-9]{1,18}([.][0-9]{1,9})?([KMGTPE]i|[numkMGTPE])?$`)

// plainQuantity reads a quantity, but none with an exponent.
func plainQuantity(text string) (quantity resource.Quantity, ok bool) {
	if !plain.MatchString(text) {
		return resource.Quantity{}, false
	}
	quantity, err := resource.ParseQuantity(text)
	return quantity, err == nil
}

// suffices tells whether all refusals are for quotas, which are the last check of the API server, and what is deleted frees enough of them.
func suffices(ctx context.Context, client *tenant.Client, failed []*objecterror.Error, first []plan.Deletion) bool {
	needed := map[string]*excess{}
	for _, f := range failed {
		of := exceeded(f)
		if of == nil {
			return false
		}
		key := f.Namespace + "/" + of.quota
		if needed[key] == nil {
			needed[key] = of
			continue
		}
		for name, more := range of.requested {
			sum := needed[key].requested[name]
			sum.Add(more)
			needed[key].requested[name] = sum
		}
	}
	freed := map[string]map[string]resource.Quantity{}
	for key, of := range needed {
		namespace, _, _ := strings.Cut(key, "/")
		if freed[namespace] == nil {
			freed[namespace] = frees(ctx, client, first, namespace)
		}
		if !of.fits(freed[namespace]) {
			return false
		}
	}
	return true
}

// fits tells whether the request fits into the quota without what is freed.
func (e excess) fits(freed map[string]resource.Quantity) bool {
	for name, requested := range e.requested {
		limit, known := e.limited[name]
		requested.Add(e.used[name])
		requested.Sub(freed[name])
		if !known || requested.Cmp(limit) > 0 {
			return false
		}
	}
	return len(e.requested) > 0
}

// frees is what the deletions free of the quotas of a namespace, by the names that quotas have for it. What Pods use is not known.
func frees(ctx context.Context, client *tenant.Client, first []plan.Deletion, namespace string) map[string]resource.Quantity {
	freed := map[string]resource.Quantity{}
	add := func(name string, quantity resource.Quantity) {
		sum := freed[name]
		sum.Add(quantity)
		freed[name] = sum
	}
	one := resource.MustParse("1")
	for _, deletion := range first {
		if deletion.Namespace != namespace {
			continue
		}
		kind := deletion.Resource.GroupResource()
		add("count/"+kind.String(), one)
		if kind.Group == "" {
			add(kind.Resource, one)
		}
		if kind.String() != "persistentvolumeclaims" {
			continue
		}
		claim, err := client.Get(ctx, tenant.RefTo(deletion.ID, deletion.Resource))
		if err != nil {
			continue // it frees no storage that is known
		}
		size, _, _ := unstructured.NestedString(claim.Object, "spec", "resources", "requests", "storage")
		class, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
		add(class+".storageclass.storage.k8s.io/persistentvolumeclaims", one)
		if storage, plain := plainQuantity(size); plain {
			add("requests.storage", storage)
			add(class+".storageclass.storage.k8s.io/requests.storage", storage)
		}
	}
	return freed
}
