// SPDX-License-Identifier: Apache-2.0

package cli

import "github.com/satchel-dev/satchel/tests/clirig"

const (
	digestA   = clirig.DigestA
	digestB   = clirig.DigestB
	revisionA = clirig.RevisionA
	revisionB = clirig.RevisionB
	originB   = clirig.OriginB
)

// The objects of clirig, and how tests change them.
var (
	noon        = clirig.Noon
	ago         = clirig.Ago
	aSource     = clirig.Source
	aCatalog    = clirig.Catalog
	aDeployment = clirig.Deployment
	called      = clirig.Called
	reference   = clirig.Reference
	condition   = clirig.Condition
	yes         = clirig.Yes
	no          = clirig.No
	with        = clirig.With
	replaced    = clirig.Replaced
	without     = clirig.Without
	never       = clirig.Never
	first       = clirig.First
	retrying    = clirig.Retrying
	working     = clirig.Working
)
