# Makes a repository with one commit.
git init -q repo && git -C repo commit -q --allow-empty -m begin
