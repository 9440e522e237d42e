// SPDX-License-Identifier: Apache-2.0

package objecterror

import (
	"errors"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

func TestObjectErrorStaysShort(t *testing.T) {
	id := inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: "one"}
	err := Of(id, errors.New("a\n\tb "+strings.Repeat("é", 2000)))
	if strings.ContainsAny(err.Error(), "\n\t") || len(err.Message) > maxMessage+10 || !strings.HasPrefix(err.Error(), "ConfigMap shop/one: a b é") {
		t.Errorf("%d bytes: %.40q", len(err.Message), err)
	}
	if !err.Transient() {
		t.Error("no answer of the API server may be a passing trouble")
	}
}
