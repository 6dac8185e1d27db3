"""What the agent's user at a PostgreSQL server needs, and no more: to make roles of links, and to grant what it owns.

It has no CREATEROLE. Before PostgreSQL 16 that right gives every role there is to whoever has it, also those that run
programs on the server, and so the whole server. A function of an administrator's makes the roles instead: only those
whose names begin like a link's, and only changes that a link needs (A7).
"""

from __future__ import annotations

from typing import Final

from fractal_cloud.offers.policy import PLAIN, PolicyOptions

_WITHOUT_LINKS: Final = """\
-- Without links the agent logs in to no PostgreSQL server, and needs no user: whether one answers is asked without any.
-- With links:  fractal agent policy --provider postgres --with-links
"""
_POLICY: Final = """\
-- For psql, as an administrator, in the database that FRACTAL_POSTGRES_DSN_<LIVESYSTEM>_<COMPONENT> will name, once for
-- each database that is linked to:  psql -v database=orders -f FILE postgres
-- Then give the user a password (\\password fractal), and put it into that variable.
-- Tables that somebody else owns it cannot grant: ALTER TABLE … OWNER TO fractal, for those that links may use.
SELECT 'CREATE ROLE fractal LOGIN'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'fractal') \\gexec
ALTER ROLE fractal NOSUPERUSER NOCREATEROLE NOREPLICATION NOBYPASSRLS;
ALTER DATABASE :"database" OWNER TO fractal;
CREATE SCHEMA IF NOT EXISTS fractal_cloud;
CREATE OR REPLACE FUNCTION fractal_cloud.change_role(action text, role_name text, value text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  is_there boolean := EXISTS (SELECT FROM pg_roles WHERE rolname = role_name);
BEGIN
  IF role_name IS NULL OR role_name !~ '^fc_[a-z0-9_]{1,60}$' THEN
    RAISE EXCEPTION 'role % has no name of a link', quote_nullable(role_name) USING ERRCODE = '42501';
  END IF;
  IF action = 'create' AND NOT is_there THEN
    EXECUTE format('CREATE ROLE %I LOGIN', role_name);
    EXECUTE format('GRANT %I TO %I', role_name, session_user);
    RETURN;
  END IF;
  -- Whoever made it by this function is a member of it; other people's roles are not touched.
  IF NOT is_there OR NOT EXISTS (
    SELECT FROM pg_auth_members
    WHERE roleid = to_regrole(quote_ident(role_name)) AND member = to_regrole(quote_ident(session_user))
  ) THEN
    RAISE EXCEPTION 'role % was not made by %', quote_ident(role_name), session_user USING ERRCODE = '42501';
  END IF;
  IF action = 'password' AND value LIKE 'SCRAM-SHA-256$%' THEN
    EXECUTE format('ALTER ROLE %I PASSWORD %L', role_name, value);
  ELSIF action = 'login' THEN
    EXECUTE format('ALTER ROLE %I LOGIN', role_name);
  ELSIF action = 'nologin' THEN
    EXECUTE format('ALTER ROLE %I NOLOGIN', role_name);
  ELSIF action = 'comment' AND value LIKE 'fractal-cloud-link:%' THEN
    EXECUTE format('COMMENT ON ROLE %I IS %L', role_name, value);
  ELSIF action = 'drop' THEN
    EXECUTE format('DROP ROLE %I', role_name);
  ELSE
    RAISE EXCEPTION 'a link needs no % of a role', quote_nullable(action) USING ERRCODE = '42501';
  END IF;
END $$;
REVOKE ALL ON FUNCTION fractal_cloud.change_role(text, text, text) FROM PUBLIC;
GRANT USAGE ON SCHEMA fractal_cloud TO fractal;
GRANT EXECUTE ON FUNCTION fractal_cloud.change_role(text, text, text) TO fractal;
"""


def policy(options: PolicyOptions = PLAIN) -> str:
    """The statements that make such a user; it is no superuser, and makes no roles but those of links."""
    options.check("postgres", ("with_links",))
    return _POLICY if options.with_links else _WITHOUT_LINKS
