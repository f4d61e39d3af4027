# Joins as a host, from the folder FAR, which has a clone of the repository: join.sh FAR
host=$1
token=$(orchestrator token issue --actor "HO:$host" -q)
mkdir -p "$host"
cp ./*.sh ./*.hcl "$host"
[ ! -e repo ] || [ -e "$host/repo" ] || git clone -q repo "$host/repo"
cd "$host"
ORC_TOKEN=$token exec orchestrator join "http://$ADDRESS" --state-dir .orchestrator
