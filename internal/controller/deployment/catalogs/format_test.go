// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

func TestF56Queries(t *testing.T) {
	in := input("1.0.0", func(*v1alpha1.BundleDeployment) {})
	formats.Golden(t, format.CatalogQuery, []byte(queryDigest(in.Object.Spec.Catalog)+"\n"+in.inputDigest([]looked{shop("shop")})+"\n"))
}
