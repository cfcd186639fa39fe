package trust

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var guid = regexp.MustCompile(`\A[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\z`)

const exampleGUID = "00000000-0000-0000-0000-000000000000"

type azureTrust struct {
	client, tenant, subscription string
	credential, audience         string
}

func azureSide(i Identity) (azureTrust, error) {
	side := azureTrust{credential: cut("credence_"+i.label(), 120)}
	for field, value := range map[string]*string{"clientID": &side.client, "tenantID": &side.tenant, "subscriptionID": &side.subscription} {
		parts, err := i.want(field, guid, exampleGUID)
		if err != nil {
			return side, err
		}
		*value = parts[0]
	}
	if len(i.Audiences) != 1 {
		return side, fmt.Errorf("it has %d audiences, and a federated identity credential of Azure has exactly one: leave one in spec.audiences, usually api://AzureADTokenExchange", len(i.Audiences))
	}
	side.audience = i.Audiences[0]
	return side, nil
}

func azureCommands(i Identity) (string, error) {
	side, err := azureSide(i)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(side.audience, "@") || strings.HasPrefix(side.audience, "-") {
		return "", errors.New("its audience begins with @ or -, which the Azure CLI takes for a file or an option: use -o terraform")
	}
	find := func(what string) string {
		return fmt.Sprintf(`$(az identity list --subscription %s --query "[?clientId=='%s'].%s" --output tsv)`, shell(side.subscription), side.client, what)
	}
	return fmt.Sprintf(`# The managed identity whose client ID is %s. An app registration takes the same values by
# az ad app federated-credential create.
IDENTITY_NAME=%s
RESOURCE_GROUP=%s

%s`, side.client, find("name"), find("resourceGroup"),
		command(`az identity federated-credential create --identity-name "$IDENTITY_NAME" --resource-group "$RESOURCE_GROUP"`,
			[2]string{"--subscription=", side.subscription}, [2]string{"--name=", side.credential}, [2]string{"--issuer=", i.Issuer},
			[2]string{"--subject=", i.Subject}, [2]string{"--audiences=", side.audience})), nil
}

func azureTerraform(i Identity) (string, error) {
	side, err := azureSide(i)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`# The managed identity whose client ID is %s, in subscription %s.
variable "user_assigned_identity_id" {
  type = string
}
variable "resource_group_name" {
  type = string
}

`, side.client, side.subscription) +
		block("resource", []string{"azurerm_federated_identity_credential", i.resourceName()}, member{"name", side.credential},
			member{"resource_group_name", reference("var.resource_group_name")}, member{"parent_id", reference("var.user_assigned_identity_id")},
			member{"issuer", i.Issuer}, member{"subject", i.Subject}, member{"audience", []string{side.audience}}), nil
}
